"""The console: pages and routes for admins, on a separate listener (docs/console.md)."""

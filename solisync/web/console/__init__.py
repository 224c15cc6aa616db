"""Administration over HTTP, on a listener of its own: docs/console.md."""

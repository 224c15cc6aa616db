"""The commands: `solisync` and its subcommands, and `solisync-reset-password` (docs/administration.md)."""

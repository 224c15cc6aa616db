"""What every process has: start and stop, the listening port, logs, metrics, the audit log."""

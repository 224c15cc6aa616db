"""The parts of every process: start and stop, the listening port, logs, metrics, the audit trail."""

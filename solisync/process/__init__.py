"""What every process needs: starting and stopping, the listening port, logs, metrics, the audit trail."""

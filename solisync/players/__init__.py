"""What the service keeps about players beside their requests: the history of accounts, and exports of everything."""

"""Work about players outside of their requests: the history of accounts, facts for operators, and exports."""

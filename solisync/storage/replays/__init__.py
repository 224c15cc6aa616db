"""SQL about replays: uploads, lists, checks, verdicts, boards."""

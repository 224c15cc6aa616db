"""The entry point of the `solisync` command."""

import gc

GC_THRESHOLD = 100_000  # new objects; imports leave hardly any garbage, and collecting it would take 50 to 80 ms


def main() -> None:
    """Import the command and run it; the service sets its own thresholds when it starts."""
    gc.set_threshold(GC_THRESHOLD)
    from .main import main

    main()

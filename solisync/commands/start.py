"""The entry point of the `solisync` command."""

import gc

GC_THRESHOLD = 100_000  # new objects; importing makes hardly any garbage, and looking for it takes 50 to 80 ms


def main() -> None:
    """Import the command and run it; the service sets thresholds of its own when it starts."""
    gc.set_threshold(GC_THRESHOLD)
    from .main import main

    main()

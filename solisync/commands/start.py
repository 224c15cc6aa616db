"""The entry points of the commands `solisync` and `solisync-reset-password`."""

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager

GC_THRESHOLD = 100_000  # new objects; imports leave hardly any garbage, and collecting it would take 50 to 80 ms


def main() -> None:
    """Run `solisync`; the service sets its own thresholds when it starts."""
    with _importing():
        from .main import main

    main()


def reset_password() -> None:
    """Run `solisync-reset-password`."""
    with _importing():
        from .reset_password import main

    main()


@contextmanager
def _importing() -> Iterator[None]:
    """Import faster, and let Ctrl-C end the process without a traceback."""
    gc.set_threshold(GC_THRESHOLD)
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, handler)

"""Reports the state of the service to systemd, if systemd started it (sd_notify(3), docs/deployment.md).

Each report is one datagram to the socket that NOTIFY_SOCKET names. Without that variable nothing is sent.
"""

import socket
import time
from collections.abc import MutableMapping

from twisted.logger import Logger

VARIABLE = "NOTIFY_SOCKET"

_log = Logger()


class ServiceManager:
    """The service manager that started this process, or none."""

    def __init__(self, address: str | None = None) -> None:
        # systemd writes the null byte that begins an abstract address as @.
        self._address = f"\0{address[1:]}" if address and address.startswith("@") else address

    @classmethod
    def from_environ(cls, environ: MutableMapping[str, str]) -> "ServiceManager":
        """Take the address out of `environ`, because only the main process may report, and no child of it."""
        return cls(environ.pop(VARIABLE, None))

    def status(self, text: str) -> None:
        """Report one line, which `systemctl status` shows."""
        self._send(f"STATUS={text}")

    def ready(self, text: str) -> None:
        """Report that the start or the reload has ended and that this process serves."""
        self._send(f"READY=1\nSTATUS={text}")

    def reloading(self) -> None:
        """Report that a reload begins; `ready` must follow."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}\nSTATUS=reloading")

    def stopping(self) -> None:
        """Report that the service stops."""
        self._send("STOPPING=1\nSTATUS=stopping")

    def _send(self, report: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(report.encode(), self._address)
        except OSError as error:
            _log.warn("can't report to the service manager: {error}", error=error)

"""Many clients of streams, for `python -m tests.fire.crowd`: they open a stream, leave immediately, and come again.

Arguments: PORT TIMES, and an access token in each line of standard input. It is a separate process, so that it
shares no interpreter with the watch. It prints the seconds of each opening, of all streams together.
"""

import socket
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tests.harness.constants import PATIENCE
from tests.harness.http_requests import new_address

WIDTH = 50  # streams that are being opened at a time
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: the connection is cut and not closed


def open_stream(port, token):
    """Open a stream; return its socket, once it has begun."""
    client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    fields = f"Host: a\r\nX-Forwarded-For: {new_address()}\r\nAuthorization: Bearer {token}\r\n"
    client.sendall(f"GET /api/events HTTP/1.1\r\n{fields}\r\n".encode("ascii"))
    read = b""
    while b"event: hello" not in read:
        part = client.recv(4_096)
        assert part, f"the stream has ended: {read}"
        read += part
    return client


def main():
    port, times = map(int, sys.argv[1:])
    tokens = sys.stdin.read().split()
    with ThreadPoolExecutor(WIDTH) as threads:
        for _ in range(times):
            began = time.monotonic()
            clients = [*threads.map(lambda token: open_stream(port, token), tokens)]
            print(f"{time.monotonic() - began:.1f}", flush=True)
            for client in clients:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                client.close()


if __name__ == "__main__":
    main()

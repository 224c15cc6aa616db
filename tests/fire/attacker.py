"""A client that sends requests as fast as it gets answers, for `python -m tests.fire.attacker`.

Arguments: PORT CONNECTIONS SECONDS AHEAD, and the request on standard input. Each connection sends it AHEAD times
before it reads. It is a separate process, so that it shares no interpreter with the watch. It prints the number of
answers by status.
"""

import socket
import sys
import threading
import time
from collections import Counter

from tests.fire.raw import next_status
from tests.harness.constants import PATIENCE


def attack(port, request, seconds, ahead, statuses):
    """Send the request on one connection until the time is over."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client, client.makefile("rb") as answers:
        while time.monotonic() < seconds:
            client.sendall(request * ahead)
            for _ in range(ahead):
                statuses[next_status(answers)] += 1


def main():
    port, connections, seconds, ahead = map(int, sys.argv[1:])
    request = sys.stdin.buffer.read()
    until = time.monotonic() + seconds
    counters = [Counter() for _ in range(connections)]
    threads = [threading.Thread(target=attack, args=(port, request, until, ahead, each)) for each in counters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(dict(sum(counters, Counter())))


if __name__ == "__main__":
    main()

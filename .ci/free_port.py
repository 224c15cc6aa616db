"""End with a line of advice if a port of this machine is in use: `free_port.py PORT`."""

import socket
import sys

try:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", int(sys.argv[1])))
except OSError as error:
    sys.exit(f"port {sys.argv[1]}: {error.strerror}; to use another one: make run PORT=8081")

"""nginx in front of the service, as an operator would configure it: one process, on a local port."""

import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.harness.nginx import run_nginx
from tests.harness.processes import Process, free_port

CONTENTS = """
    log_format requests '$http_x_request_id $upstream_addr';
    access_log {directory}/requests.log requests;
    upstream service {{
        server 127.0.0.1:{upstream};
        keepalive 1;
    }}
    server {{
        listen 127.0.0.1:{port};
        {directives}
        location / {{
            proxy_pass http://service;
            proxy_http_version 1.1;
            proxy_next_upstream off;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }}
    }}
"""


@dataclass(frozen=True)
class Nginx:
    """A running nginx. Its connections to the service are kept alive, so its clients share them."""

    process: Process
    port: int
    directory: Path

    def passed_on(self):
        """Stop nginx; return how many requests with each X-Request-Id it has passed on ("-" is one without)."""
        self.process.stop(signal.SIGQUIT)
        lines = (self.directory / "requests.log").read_text("utf-8", "replace").splitlines()
        requests = (line.rsplit(" ", 1) for line in lines)
        return Counter(request_id for request_id, upstream in requests if upstream != "-")


def start_nginx(launch, directory, upstream, *directives):
    """Start nginx in front of the port `upstream`, with further directives for its server; return when it listens."""
    port = free_port()
    directives = " ".join(f"{line};" for line in directives)
    contents = CONTENTS.format(directory=directory, port=port, upstream=upstream, directives=directives)
    return Nginx(run_nginx(launch, directory, contents, port), port, directory)

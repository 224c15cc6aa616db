"""The samples of deploy/ at work: each as in the file, but with local ports and paths."""

import http.client
import json
import re
import ssl
import subprocess
import threading
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

from tests.harness.constants import PATIENCE, ROOT
from tests.harness.nginx import run_nginx
from tests.harness.processes import Process, free_port, wait_until_listening

DEPLOY = ROOT / "deploy"
NAME = "play.example.org"
SOCKET = "/run/solisync/http.sock"


def filled(text, places):
    """Return the text of a sample with these replacements; each place must be in it."""
    for there, here in places.items():
        assert there in text, there
        text = text.replace(there, str(here))
    return text


@dataclass(frozen=True)
class Proxy:
    """A running proxy: where it listens, and the certificate that it shows."""

    process: Process
    port: int
    plain_port: int
    certificate: Path

    def connect(self, source="127.0.0.1", timeout=PATIENCE):
        """Return a connection of the client at this address, over TLS."""
        trusting = ssl.create_default_context(cafile=self.certificate)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=timeout, context=trusting, source_address=(source, 0)
        )

    def ask(self, method, path, body=None, headers=None, *, source="127.0.0.1", connection=None):
        """Send one request; return its status, its JSON, and the header of its answer."""
        own = connection or self.connect(source)
        if body is not None and not hasattr(body, "__next__") and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        own.request(method, path, body, {"Host": NAME, **(headers or {})})
        response = own.getresponse()
        content = response.read()
        if connection is None:
            own.close()
        return response.status, json.loads(content), response.headers


def make_certificate(directory):
    """Make a certificate for the sample's name and this machine, and its key, in the files that certbot would leave."""
    certificate, key = directory / "fullchain.pem", directory / "privkey.pem"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME},IP:127.0.0.1"]
    subprocess.run(
        ["openssl", *words, *names, "-out", certificate, "-keyout", key],
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    )
    return certificate, key


def nginx_version():
    said = subprocess.run(["nginx", "-v"], capture_output=True, text=True, timeout=PATIENCE).stderr
    return tuple(map(int, re.search(r"nginx/(\d+)\.(\d+)", said).groups()))


def start_nginx(launch, directory, upstream, *, port=None, **limits):
    """Start nginx with the sample in front of `upstream`, the path of a socket, or the ports of several nodes."""
    certificate, key = make_certificate(directory)
    port, plain_port = port or free_port(), free_port()
    sites = directory / "conf.d"
    sites.mkdir(exist_ok=True)
    live = f"/etc/letsencrypt/live/{NAME}"
    http2 = {"listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;"}
    if nginx_version() < (1, 25):  # as the sample says
        http2 = {"listen 443 ssl;": f"listen 127.0.0.1:{port} ssl http2;", "    http2 on;": "    #"}
    places = {
        "    listen [::]:443 ssl;\n": "",
        "    listen [::]:80;\n": "",
        **http2,
        "listen 80;": f"listen 127.0.0.1:{plain_port};",
        f"{live}/fullchain.pem": certificate,
        f"{live}/privkey.pem": key,
    }
    sample = (DEPLOY / "nginx" / "solisync.conf").read_text("utf-8")
    (sites / "solisync.conf").write_text(filled(sample, places))
    if isinstance(upstream, Path):
        name, places = "upstream-socket.conf", {SOCKET: upstream}
    else:
        name, places = "upstream-nodes.conf", {f"node{n}:8080": f"127.0.0.1:{p}" for n, p in enumerate(upstream, 1)}
    (sites / name).write_text(filled((DEPLOY / "nginx" / name).read_text("utf-8"), places))
    process = run_nginx(launch, directory, f"access_log off; include {sites}/*.conf;", port, **limits)
    return Proxy(process, port, plain_port, certificate)


def start_haproxy(launch, directory, upstream, first=""):
    """HAProxy with the sample in front of the socket `upstream`; `first` is the first line of its frontend."""
    certificate, key = make_certificate(directory)
    both = directory / "both.pem"
    both.write_text(certificate.read_text() + key.read_text())
    port, plain_port = free_port(), free_port()
    places = {
        "frontend players\n": f"frontend players\n    {first}\n",
        "bind :::443 v4v6 ": f"bind 127.0.0.1:{port} ",
        "bind :::80 v4v6\n": f"bind 127.0.0.1:{plain_port}\n",
        f"/etc/haproxy/{NAME}.pem": both,
        SOCKET: upstream,
        "    user haproxy": "    #",
        "    group haproxy\n": "",
        "log /dev/log local0": "log stderr format raw local0",
    }
    configuration = directory / "haproxy.cfg"
    configuration.write_text(filled((DEPLOY / "haproxy.cfg").read_text("utf-8"), places))
    process = launch("haproxy", "-db", "-f", configuration)
    wait_until_listening(process, port)
    return Proxy(process, port, plain_port, certificate)


def start_caddy(launch, directory, upstream):
    """Caddy with the sample in front of the socket `upstream`; it gets a certificate instead of getting itself one."""
    certificate, key = make_certificate(directory)
    port, plain_port = free_port(), free_port()
    options = f"{{\n\tadmin off\n\tauto_https disable_redirects\n\thttp_port {plain_port}\n\thttps_port {port}\n}}\n"
    places = {
        f"\n{NAME} {{\n": f"\n{NAME} {{\n\tbind 127.0.0.1\n\ttls {certificate} {key}\n",
        f"unix/{SOCKET}": f"unix/{upstream}",
    }
    sample = filled((DEPLOY / "Caddyfile").read_text("utf-8"), places)
    configuration = directory / "Caddyfile"
    configuration.write_text(options + sample)
    home = str(directory)
    words = ("caddy", "run", "--adapter", "caddyfile", "--config", configuration)
    process = launch(*words, HOME=home, XDG_DATA_HOME=home, XDG_CONFIG_HOME=home)
    wait_until_listening(process, port)
    return Proxy(process, port, plain_port, certificate)


STARTS = {"nginx": start_nginx, "haproxy": start_haproxy, "caddy": start_caddy}


class CountingService(ThreadingUnixStreamServer):
    """A server instead of the service, which counts the connections made to it."""

    daemon_threads = True

    def __init__(self, path):
        super().__init__(str(path), _Answer)
        self.connections = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def process_request(self, request, client_address):
        self.connections += 1
        super().process_request(request, client_address)


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_OPTIONS = do_GET  # of a health check

    def address_string(self):
        return "unix"

    def log_message(self, *words):
        pass


class Crowd:
    """Requests through a proxy from several threads, half on connections that are kept; `wrong` lists the failures."""

    def __init__(self, proxy, clients=8, pause=0.02):
        self.outcomes = Counter()
        self.wrong = []
        self._proxy = proxy
        self._pause = pause
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(bool(n % 2), n)) for n in range(clients)]
        for thread in self._threads:
            thread.start()

    def _run(self, keep, number):
        connection = self._proxy.connect() if keep else None
        while not self._over.wait(self._pause):
            try:
                if number % 4 < 2:
                    answer = self._proxy.ask("GET", "/api/daily-challenge", connection=connection)
                else:  # a body, and one that may not be sent twice
                    answer = self._proxy.ask("POST", "/api/sync/push", b"x" * 20_000, connection=connection)
                self.outcomes[answer[0]] += 1
                if answer[0] == 503 and answer[1] != {"error": "service unavailable"}:
                    self.wrong.append(answer[1])
            except Exception as error:
                self.wrong.append(repr(error))
                if connection is not None:
                    connection.close()
        if connection is not None:
            connection.close()

    def stop(self):
        """End the requests; return their number by status."""
        self._over.set()
        for thread in self._threads:
            thread.join(40)
        return dict(self.outcomes)

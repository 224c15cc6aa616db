"""nginx as a single process, with its files in one directory."""

from tests.harness.processes import wait_until_listening

CONFIGURATION = """
daemon off;
master_process off;
pid {directory}/nginx.pid;
events {{ worker_connections {connections}; }}
http {{
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    {contents}
}}
"""


def run_nginx(launch, directory, contents, port, *, connections=512):
    """Start nginx with these contents of its `http` block; return its process once it listens on the port."""
    configuration = directory / "nginx.conf"
    configuration.write_text(CONFIGURATION.format(directory=directory, contents=contents, connections=connections))
    process = launch("nginx", "-p", directory, "-c", configuration, "-e", directory / "error.log")
    wait_until_listening(process, port)
    return process

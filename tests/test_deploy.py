"""The files of deploy/ agree with the program and with each other; tests/deploy tries them with the real programs."""

import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from solisync.commands.main import command_parser
from solisync.commands.parsers import SHELLS
from solisync.embedded.server import STOP_SECONDS
from solisync.settings import env_file
from solisync.settings.settings import ServingSettings, Settings
from solisync.settings.table import TABLE
from solisync.supervisor import STOP_MARGIN_SECONDS
from solisync.web.wire.connection import BODY_SECONDS
from solisync.web.wire.connections import UNFINISHED_MAX, UNREAD_MAX
from tests.deploy import units
from tests.harness.constants import ROOT, SECRET
from tests.harness.entry_points import SOLISYNC
from tests.harness.processes import run

DEPLOY = ROOT / "deploy"
CONTAINER = DEPLOY / "container"
COMPOSED = [CONTAINER / "compose.yaml", CONTAINER / "compose.nodes.yaml"]
VARIABLES = {setting.variable: setting for setting in TABLE}
DEFAULT_STOP_SECONDS = float(VARIABLES["SOLISYNC_STOP_SECONDS"].default)
LONGEST_STOP_SECONDS = DEFAULT_STOP_SECONDS + STOP_MARGIN_SECONDS + STOP_SECONDS


def seconds(text):
    """Return the number of seconds in `45s`."""
    return float(re.fullmatch(r"(\d+)s", text)[1])


def ours(variables):
    """Return the names that are settings of solisync."""
    return {name for name in variables if re.match(r"SOLISYNC_|JWT_|DATABASE_", name)}


def test_every_variable_in_deploy_exists():
    for file in (file for file in DEPLOY.rglob("*") if file.is_file()):
        words = re.findall(r"\b(?:SOLISYNC|JWT|DATABASE)_[A-Z_]+\b", file.read_text("utf-8"))
        assert set(words) <= set(VARIABLES), file


def test_every_file_that_the_docs_name_exists():
    """The secret of docs/deployment.md is made by its commands."""
    text = (ROOT / "docs" / "deployment.md").read_text("utf-8")
    for name in re.findall(r"\bdeploy/[\w./-]*\w", text):
        assert (ROOT / name).exists() or name.endswith("/jwt-secret"), name
    for name in re.findall(r"^\| (`.+?) \|", text.partition("The commands below")[0], re.M):
        for file in re.findall(r"`(.+?)`", name):
            assert (DEPLOY / file).exists(), file


def test_make_test_ha_names_missing_programs():
    """The error is one line."""
    done = run(sys.executable, "-m", "tests.ha", cwd=ROOT, PATH="/nonexistent")
    assert (done.status, len(done.err)) == (2, 1)
    assert re.match(r"make test-ha needs patroni, etcd, haproxy, pgbouncer.*: apt-get install patroni ", done.err[0])


# systemd.


def test_sample_of_the_settings_is_complete_and_right():
    """solisync.env has each setting once, as a comment, with its default or a valid example."""
    text = (DEPLOY / "solisync.env").read_text("utf-8")
    paragraphs = re.findall(r"((?:^# .+\n)+)((?:^#[A-Z_]+=.*\n)+)", text, re.M)
    sample = {}
    for comment, lines in paragraphs:
        for name, value in re.findall(r"^#([A-Z_]+)=(.*)$", lines, re.M):
            assert name not in sample
            sample[name] = (value, "(example)" in comment)
    assert set(sample) == set(VARIABLES) - {
        "JWT_SECRET",
        "JWT_SECRET_PREVIOUS",
        "DATABASE_URL_FILE",
        "SOLISYNC_BUS_DATABASE_URL_FILE",
    }  # of the first two, the file is given instead; of the others, the file that all units read is the place
    holds = {setting.variable: setting.default for setting in TABLE} | units.environment()
    for name, (value, is_example) in sample.items():
        if is_example and name not in units.environment():
            assert not holds[name], f"{name} has a default"
        else:
            assert value == holds[name], name
        if not value.startswith(("/run/credentials/", "systemd:")):  # which are there only in a service
            VARIABLES[name].read(value)


def test_unit_has_valid_settings():
    """The environment sets several workers, without which a reload would stop the service."""
    given = units.environment()
    assert ours(given) == set(given) <= set(VARIABLES)
    listen = given.pop("SOLISYNC_LISTEN")
    name = units.settings(units.SOCKET)["FileDescriptorName"][0]
    assert listen == f"systemd:domain=UNIX:name={name}"
    del given["JWT_SECRET_FILE"]
    assert ServingSettings.from_environ(given | {"JWT_SECRET": SECRET}).workers > 1
    assert units.settings(units.SERVICE)["Type"] == ["notify-reload"]


def test_memory_limit_of_the_unit_exceeds_the_bounds_of_the_service():
    """Each worker bounds unfinished bodies and unread answers, and PostgreSQL has room in addition."""
    unit = units.settings(units.SERVICE)
    (most,) = unit["MemoryMax"]
    workers = int(units.environment()["SOLISYNC_WORKERS"]) + 1  # one more while they are replaced
    assert int(most.removesuffix("G")) * 2**30 > workers * (UNFINISHED_MAX + UNREAD_MAX + 150 * 2**20) + 512 * 2**20
    assert unit["OOMPolicy"] == ["continue"]


def test_supervisors_wait_longer_than_a_stop_takes():
    """A killed service could neither drain its requests nor stop its database."""
    unit = units.settings(units.SERVICE)
    assert unit["KillMode"] == ["mixed"]
    assert seconds(unit["TimeoutStopSec"][0]) > LONGEST_STOP_SECONDS
    for file in COMPOSED:
        for name, service in yaml.safe_load(file.read_text("utf-8"))["services"].items():
            if "build" in service:
                assert seconds(service["stop_grace_period"]) > LONGEST_STOP_SECONDS, name


def test_units_and_proxies_use_one_socket():
    """All samples have the path of solisync.socket, and the file stays when the service stops."""
    (path,) = units.settings(units.SOCKET)["ListenStream"]
    for name in ("nginx/upstream-socket.conf", "haproxy.cfg", "Caddyfile"):
        assert path in (DEPLOY / name).read_text("utf-8"), name
    unit = units.settings(units.SERVICE)
    assert "RuntimeDirectory" not in unit
    assert unit["Requires"] == ["solisync.socket"]
    assert unit["User"] == unit["Group"] == units.settings(units.SOCKET)["SocketGroup"]
    assert f"u {unit['User'][0]} " in (units.UNITS / "solisync.sysusers.conf").read_text("utf-8")


def test_console_has_its_own_socket():
    """The socket belongs to the same service, under the name in the sample; its separate group is created."""
    socket = units.settings(units.UNITS / "solisync-admin.socket")
    (name,) = socket["FileDescriptorName"]
    assert f"#SOLISYNC_ADMIN_LISTEN=systemd:domain=UNIX:name={name}\n" in (DEPLOY / "solisync.env").read_text("utf-8")
    assert socket["Service"] == ["solisync.service"]
    (group,) = socket["SocketGroup"]
    assert f"g {group} -" in (units.UNITS / "solisync.sysusers.conf").read_text("utf-8")
    assert group not in units.settings(units.SOCKET)["SocketGroup"]


def test_backup_unit_reads_the_database_of_the_service():
    """User, settings and restrictions are the same, and solisync accepts its command."""
    service, backup = units.settings(units.SERVICE), units.settings(units.BACKUP)
    for name in ("User", "Group", "StateDirectoryMode", "UMask", "EnvironmentFile"):
        assert backup[name] == service[name], name
    assert backup["Environment"] == [f"SOLISYNC_DATA_DIR={units.environment()['SOLISYNC_DATA_DIR']}"]
    assert backup["SystemCallFilter"] == service["SystemCallFilter"][:2]
    text = units.SERVICE.read_text("utf-8").partition("# What it can't do")[2].partition("\n[Install]")[0]
    own = {"SystemCallFilter", "RemoveIPC"}  # the service's threads set priorities; IPC is removed when no unit is left
    for name in {*re.findall(r"^(\w+)=", text, re.M)} - own:
        assert backup[name] == service[name], name
    (line,) = backup["ExecStart"]
    assert Path(service["ExecStart"][0].split()[0]).parent == Path(line.split()[0]).parent
    chosen = command_parser().parse_args(line.split()[1:])
    assert chosen.into.removeprefix("%S/") in backup["StateDirectory"][0].split()
    assert chosen.keep >= 7
    assert units.TIMER.stem == units.BACKUP.stem


def test_every_unit_finds_the_database_that_the_sample_names(tmp_path):
    """One line in solisync.env moves the service, the backup and commands with --env-file to another database."""
    text = (DEPLOY / "solisync.env").read_text("utf-8")
    (line,) = re.findall(r"^#(DATABASE_URL=.*)$", text, re.M)
    file = tmp_path / "solisync.env"
    file.write_text(text.replace(f"#{line}", line))
    programs = [unit for unit in units.UNITS.glob("*.service") if "ExecStart=/opt/solisync/" in unit.read_text("utf-8")]
    assert len(programs) >= 2
    for unit in programs:
        assert units.settings(unit)["EnvironmentFile"] == ["-/etc/solisync/solisync.env"], unit.name
        given = dict(setting.split("=", 1) for setting in units.settings(unit)["Environment"])
        read = Settings.from_environ(given | env_file.read(str(file)))
        assert f"DATABASE_URL={read.database_url}" == line, unit.name


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_docs_set_the_database_for_all_units_together(page):
    """A DATABASE_URL for one unit alone would leave the backup on another database."""
    assert not re.search(r"^ {4}(LoadCredential=\S*database-url|Environment=DATABASE_URL)", _text(page), re.M)


# Proxies.


def test_proxies_wait_longer_than_the_service_and_keep_connections_shorter():
    """The service refuses slow requests itself, in JSON; the proxy closes idle connections."""
    nginx = (DEPLOY / "nginx" / "solisync.conf").read_text("utf-8")
    haproxy = (DEPLOY / "haproxy.cfg").read_text("utf-8")
    answering = BODY_SECONDS + 15  # and the handler's deadline
    waits = re.findall(r"proxy_(?:read|send)_timeout (\d+s)", nginx) + re.findall(
        r"timeout (?:client|server) (\d+s)", haproxy
    )
    assert len(waits) == 4
    assert all(seconds(wait) > answering for wait in waits)
    kept = [
        *re.findall(r"keepalive_timeout (\d+s)", "".join(map(_text, (DEPLOY / "nginx").glob("upstream-*")))),
        *re.findall(r"keepalive (\d+s)", (DEPLOY / "Caddyfile").read_text("utf-8")),
        *re.findall(r"timeout http-keep-alive (\d+s)", haproxy),
    ]
    assert len(kept) == 4
    (idle,) = [int(setting.default) for setting in TABLE if setting.variable == "SOLISYNC_IDLE_SECONDS"]
    assert all(seconds(time) < idle for time in kept)


@pytest.mark.parametrize("name", ["haproxy.cfg", "patroni/haproxy.cfg"])
def test_haproxy_sends_requests_to_nodes_that_are_not_ready(name):
    """A node is used again after one good check.

    While none is ready, every node is used, as high-availability.md says.
    """
    backend = _text(DEPLOY / name).partition("\nbackend solisync")[2].partition("\nlisten")[0]
    assert re.search(r"^ +default-server check .*\brise 1$", backend, re.M)
    assert re.search(r"^ +option allbackups$", backend, re.M)
    lines = re.findall(r"^ +(#?)server (\S+) (\S+)(.*)$", backend, re.M)
    checked = {(comment, f"{node}-unready", address) for comment, node, address, rest in lines if not rest}
    unready = {(comment, node, address) for comment, node, address, rest in lines if rest == " backup no-check"}
    assert checked == unready != set()
    assert len(lines) == 2 * len(checked)


def _text(file):
    return file.read_text("utf-8")


# Containers.


def instructions():
    """Return the Dockerfile's instructions: words and arguments, without comments, with continued lines joined."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", (CONTAINER / "Dockerfile").read_text("utf-8"), flags=re.M))
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def test_image_is_built_from_existing_files():
    """No copied file is kept out of the context, and the copies are all that setup.py packs."""
    words = [argument.split() for instruction, argument in instructions() if instruction == "COPY"]
    copied = {source for sources in words if not sources[0].startswith("--") for source in sources[:-1]}
    assert all((ROOT / source).exists() for source in copied)
    ignore = (CONTAINER / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert {line.removeprefix("!") for line in ignore if line.startswith("!")} == copied
    packed = re.findall(r"ROOT / \"([^\"/]+)", (ROOT / "setup.py").read_text("utf-8"))
    assert {*packed, "solisync", "twisted", "setup.py", "pyproject.toml"} - {"solisync/__init__.py"} <= copied


def test_image_runs_without_root_and_without_a_shell():
    """The user changes before anything runs, all commands are in exec form, and the data directory is the user's."""
    lines = instructions()
    last = max(place for place, (instruction, _) in enumerate(lines) if instruction == "FROM")
    final = dict(lines[last:])
    order = [instruction for instruction, _ in lines[last:]]
    assert order == [
        "FROM",
        "RUN",
        "RUN",
        "COPY",
        "RUN",
        "ENV",
        "USER",
        "VOLUME",
        "EXPOSE",
        "HEALTHCHECK",
        "ENTRYPOINT",
    ]
    assert final["USER"] == "solisync"
    assert yaml.safe_load(final["ENTRYPOINT"]) == ["solisync"]
    check = final["HEALTHCHECK"]
    assert yaml.safe_load(check[check.index("CMD") + 3 :])[0] == "python"
    for instruction, argument in lines:
        if instruction == "RUN":
            assert yaml.safe_load(argument), "in exec form"
    environment = dict(word.split("=", 1) for word in shlex.split(final["ENV"]))
    assert environment["SOLISYNC_DATA_DIR"] == final["VOLUME"]
    assert f"tcp:{final['EXPOSE']}" == environment["SOLISYNC_LISTEN"]
    assert ours(environment) <= set(VARIABLES)


@pytest.mark.parametrize("file", COMPOSED, ids=lambda file: file.name)
def test_compose_file_is_consistent(file):
    """Every setting is valid. Every file, secret, network and volume exists or is documented as to be made."""
    text = file.read_text("utf-8")
    composed = yaml.safe_load(text)
    told = re.split(r"\nname:", text)[0]
    for source in composed["secrets"].values():
        assert source["file"] in told
    for name, service in composed["services"].items():
        given = service.get("environment", {})
        for variable in ours(given):
            if not given[variable].startswith("/run/secrets/"):
                VARIABLES[variable].read(given[variable])
        secrets = {value.removeprefix("/run/secrets/") for value in given.values() if "/run/secrets/" in value}
        assert secrets == set(service.get("secrets", [])) <= set(composed["secrets"]), name
        assert set(service.get("networks", [])) <= set(composed.get("networks", {})), name
        if "build" in service:
            assert (file.parent / service["build"]["context"] / service["build"]["dockerfile"]).exists()
            assert service["init"], "who else waits for the children of a PostgreSQL that was killed?"
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("../"):
                assert (file.parent / source).exists(), source
            else:
                assert source in composed["volumes"] or Path(source).name in told, source


def test_nodes_have_the_names_in_the_sample_of_nginx():
    services = yaml.safe_load(COMPOSED[1].read_text("utf-8"))["services"]
    upstream = (DEPLOY / "nginx" / "upstream-nodes.conf").read_text("utf-8")
    nodes = re.findall(r"server (\w+):8080;", upstream)
    assert nodes == [name for name, service in services.items() if "build" in service]


# Completion.


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_has_every_option_and_command(shell):
    """The source is the script that `--print-completion` prints."""
    done = run(*SOLISYNC, "--print-completion", shell)
    assert (done.status, done.err) == (0, [])
    script = "\n".join(done.out)
    options = {option for action in command_parser()._actions for option in action.option_strings}
    for option in options:
        kind, name = "l" if option.startswith("--") else "s", option.lstrip("-")
        spelled = {"fish": rf"-{kind} {name}\b", "tcsh": rf"[( ]{name}[ )]"}.get(shell, option)
        assert re.search(spelled, script), option
    for word in ("users", "rename", "backup", "doctor"):
        assert re.search(rf"\b{word}\b", script)


def test_completion_of_an_unknown_shell_is_a_usage_error():
    """The error names the known shells."""
    done = run(*SOLISYNC, "--print-completion", "cmd")
    assert done.status == 2
    assert "'bash', 'zsh', 'fish', 'tcsh'" in done.err[-1]

"""`solisync doctor`: finds each fault, and finds none in a healthy service."""

import os
import resource
import shutil
import socket
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from psycopg2.extensions import parse_dsn
from twisted.internet import ssl
from twisted.web.resource import Resource
from twisted.web.server import Site
from twisted.web.static import Data

from solisync import __version__
from solisync.diagnosis import database as database_checks
from solisync.diagnosis import host as host_checks
from solisync.diagnosis import ports
from solisync.errors import FatalError
from solisync.housekeeping import NAMES
from solisync.klondike.daily import FIRST_DAY, LAST_DAY
from solisync.postgres.migrate import load_migrations, migrate
from solisync.settings.settings import ServingSettings
from tests.deploy.activation import ActivatedProcess, listen
from tests.harness.concurrency import wait_for
from tests.harness.constants import SECRET
from tests.harness.entry_points import SERVE, SOLISYNC, start
from tests.harness.postgres import run_sql
from tests.harness.processes import clean_environment, free_port, run
from tests.harness.service import environment

LATEST = load_migrations()[-1].number
ROWS = "GRANT ALL ON ALL TABLES IN SCHEMA public TO clerk; GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO clerk"
ACCEPTS = 0x10000  # the flag of a listening socket in /proc/net/unix; a socket that is only bound has the same state


@pytest.fixture
def examine(administrate):
    """Run the doctor, on a free port by default; return the findings, as (level, subject) to all texts."""

    async def examine(*, wrong=True, **environ):
        given = {"SOLISYNC_LISTEN": f"tcp:{free_port()}:interface=127.0.0.1"} | environ
        done = await administrate("doctor", "--json", fails=FatalError if wrong else None, **given)
        found = {}
        for record in done.records:
            place = record["level"], record["subject"]
            found[place] = f"{found.get(place, '')} {record['text']} {record['advice']}"
        return found

    return examine


@pytest.fixture
def clerk(migrated_database):
    """The DSN of a role that owns nothing."""
    run_sql(migrated_database, "CREATE ROLE clerk LOGIN")
    yield migrated_database.replace("user=solisync", "user=clerk")
    run_sql(migrated_database, "DROP OWNED BY clerk; DROP ROLE clerk")


@pytest.fixture
def hasty(monkeypatch):
    """Shorten the wait for programs that don't answer."""
    monkeypatch.setattr(ports, "ASK_SECONDS", 0.2)


async def test_healthy_service_has_no_findings(administrate, server):
    """Text and records agree. The doctor recognises that the service has the port."""
    listen = f"tcp:{server.port}:interface=127.0.0.1"
    environ = {"JWT_SECRET": SECRET, "SOLISYNC_TRUSTED_PROXIES": "127.0.0.1", "SOLISYNC_LISTEN": listen}
    environ["SOLISYNC_STREAMS"] = "10"  # more may need more files than this machine allows
    server.sql("INSERT INTO last_backup (finished_at) VALUES (now())")
    server.sql("INSERT INTO housekeeping SELECT job, now(), now() FROM unnest(%s) AS job", (NAMES,))
    records = (await administrate("doctor", "--json", **environ)).records
    assert {record["level"] for record in records} == {"ok"}
    subjects = {record["subject"] for record in records}
    database = {"database", "clock", "schema", "rights", "backup", "retention", "jobs", "disk", "tables"}
    assert subjects == {"settings", "secret", "port", "proxy", "streams", "deals", "bus"} | database
    text = await administrate("doctor", **environ)
    assert f"solisync {__version__} is running on {listen}" in text
    assert [line.split()[:2] for line in text.lines] == [["ok", record["subject"]] for record in records]


async def test_all_wrong_settings_are_found_together(examine):
    """The doctor skips checks that need settings."""
    found = await examine(JWT_SECRET="short", SOLISYNC_LISTEN="bogus:", SOLISYNC_DATABASE_CONNECTIONS="0")
    assert found.keys() == {("wrong", "settings")}
    for word in ("JWT_SECRET", "SOLISYNC_LISTEN", "SOLISYNC_DATABASE_CONNECTIONS"):
        assert word in found["wrong", "settings"]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("SOLISYNC_LISTENS", "did you mean SOLISYNC_LISTEN?"),
        ("SOLISYNC_DATABASE_CONECTIONS", "did you mean SOLISYNC_DATABASE_CONNECTIONS?"),
        ("SOLISYNC_ZZZ", "remove it"),
    ],
)
async def test_misspelt_variable_is_found_with_the_nearest_name(examine, name, advice):
    assert f"{name} is not a setting {advice}" in (await examine(**{name: "1"}))["wrong", "settings"]


@pytest.mark.parametrize(
    ("today", "level", "words"),
    [
        (FIRST_DAY, "ok", f"to {LAST_DAY} can be won"),
        (LAST_DAY - timedelta(59), "note", f"after {LAST_DAY} perhaps can't be won"),
    ],
)
def test_days_without_chosen_deals_are_found(today, level, words):
    found = host_checks.deals(today)
    assert found.level == level
    assert words in found.text


async def test_weak_secret_is_found(examine, place):
    """A missing secret is no finding; repeated words and readable files are errors."""
    assert "not set here" in (await examine(wrong=False))["note", "secret"]
    assert "is easy to guess" in (await examine(JWT_SECRET="password" * 4))["wrong", "secret"]
    random = b64encode(bytes(range(7, 224, 7))).decode()
    assert ("ok", "secret") in await examine(wrong=False, JWT_SECRET=random)
    found = await examine(JWT_SECRET=random, JWT_SECRET_PREVIOUS="password" * 4)
    assert "JWT_SECRET_PREVIOUS is easy to guess" in found["wrong", "secret"]
    file = place / "secret"
    file.write_text(random)
    file.chmod(0o640)
    assert ("ok", "secret") in await examine(wrong=False, JWT_SECRET_FILE=str(file))
    file.chmod(0o644)
    assert "all users of this machine can read" in (await examine(JWT_SECRET_FILE=str(file)))["wrong", "secret"]


@pytest.mark.parametrize("kind", ["tcp", "unix"])
async def test_port_of_another_program_is_found(examine, place, kind, hasty):
    """The check doesn't disturb the other program."""
    family = socket.AF_INET if kind == "tcp" else socket.AF_UNIX
    with socket.socket(family) as other:
        other.bind(("127.0.0.1", 0) if kind == "tcp" else str(place / "socket"))
        other.listen()
        where = f"tcp:{other.getsockname()[1]}:interface=127.0.0.1" if kind == "tcp" else f"unix:{place}/socket"
        found = await examine(SOLISYNC_LISTEN=where)
    assert "in use by another program" in found["wrong", "port"]


@pytest.mark.parametrize(
    ("where", "hosts", "level", "says"),
    [
        ("tcp:8081:interface=127.0.0.1", "", "ok", "only this machine reaches it"),
        (r"tcp:8081:interface=\:\:1", "", "ok", "only this machine reaches it"),
        ("tcp:8081:interface=0.0.0.0", "admin.example", "note", "other machines reach it"),
        ("tcp:8081:interface=0.0.0.0", "", "wrong", "doesn't start"),
        ("unix:/run/admin.sock", "admin.example", "ok", "may write to /run/admin.sock reach it; over HTTPS"),
        ("", "admin.example", "note", "the console is off"),
    ],
)
def test_reach_of_the_console_is_checked(where, hosts, level, says):
    """A unix socket and loopback are fine; a console that other machines reach needs host names."""
    environ = {"JWT_SECRET": SECRET, "SOLISYNC_ADMIN_LISTEN": where, "SOLISYNC_ADMIN_HOSTS": hosts}
    (finding,) = host_checks.console(ServingSettings.from_environ(environ))
    assert (finding.level, says in finding.text) == (level, True), finding


async def test_console_is_found_at_its_endpoint(examine, server):
    """Another program at the endpoint is an error, even if it is the service itself at the port for players."""
    listen = "tcp:{}:interface=127.0.0.1"
    there = server.service.admin_address.port
    assert "it is served" in (await examine(wrong=False, SOLISYNC_ADMIN_LISTEN=listen.format(there)))["ok", "console"]
    found = await examine(SOLISYNC_ADMIN_LISTEN=listen.format(server.port))
    assert "in use by another program" in found["wrong", "console"]
    found = await examine(SOLISYNC_ADMIN_LISTEN="unix:/missing/admin")
    assert "No such file" in found["wrong", "console"]


async def test_systemd_socket_is_not_checked(examine):
    """An operator's shell has no such socket, although the settings of the service are right."""
    admin = "systemd:domain=UNIX:name=admin"
    found = await examine(wrong=False, SOLISYNC_LISTEN="systemd:domain=UNIX:name=http", SOLISYNC_ADMIN_LISTEN=admin)
    assert "not checked" in found["note", "port"]
    assert "not checked" in found["note", "console"]
    assert not [subject for _, subject in found if subject == "proxy"]


@pytest.mark.parametrize(
    ("where", "reason"),
    [("tcp:0:interface=203.0.113.1", "Cannot assign requested address"), ("unix:/missing/socket", "No such file")],
)
async def test_unusable_port_is_found(examine, where, reason):
    """The finding quotes the error of the system."""
    assert reason in (await examine(SOLISYNC_LISTEN=where))["wrong", "port"]


def footprint(place):
    """What is in a directory, and the sockets there that listen."""
    found = {each.name: each.lstat() for each in place.iterdir()}
    files = {name: (each.st_ino, each.st_mode, each.st_uid, each.st_mtime_ns) for name, each in found.items()}
    sockets = [line.split() for line in Path("/proc/net/unix").read_text().splitlines() if str(place) in line]
    return files, [words for words in sockets if int(words[3], 16) & ACCEPTS]


@pytest.mark.parametrize(
    ("at_path", "level", "says"),
    [
        ("nothing", "ok", "is free"),
        ("left", "ok", "is free"),
        ("listening", "wrong", "in use by another program"),
        ("a file", "wrong", "File exists"),
    ],
)
@pytest.mark.parametrize("has_lock", [False, True])
async def test_second_run_finds_the_same_at_a_socket_and_changes_nothing(
    examine, place, hasty, at_path, level, says, has_lock
):
    """The doctor connects and doesn't listen. systemd's socket has no lock file; an earlier attempt may leave one."""
    path = place / "socket"
    with socket.socket(socket.AF_UNIX) as other:
        if at_path == "a file":
            path.write_text("precious")
        elif at_path != "nothing":
            other.bind(str(path))
        if at_path == "listening":
            other.listen()
        else:
            other.close()
        if has_lock:
            (place / "socket.lock").symlink_to("999999999")
        before = footprint(place)
        for _ in range(2):
            found = await examine(
                wrong=level == "wrong", SOLISYNC_LISTEN=f"unix:{path}", SOLISYNC_ADMIN_LISTEN=f"unix:{path}"
            )
            assert says in found[level, "port"]
            assert says in found[level, "console"]
        assert footprint(place) == before


@pytest.mark.parametrize("binder", ["the service", "systemd"])
async def test_second_run_finds_the_sockets_of_the_service_and_changes_nothing(
    examine, launch, logs, shared_dsn, place, binder
):
    """Each run connects to both sockets, whichever program has made the first one."""
    listens = {"SOLISYNC_LISTEN": f"unix:{place}/http", "SOLISYNC_ADMIN_LISTEN": f"unix:{place}/admin"}
    if binder == "systemd":
        variables = environment(shared_dsn, **listens | {"SOLISYNC_LISTEN": "systemd:domain=UNIX:name=http"})
        with listen(place / "http") as listening:
            log = logs / f"{place.name}.log"
            process = ActivatedProcess(listening, SERVE, clean_environment(**variables), log)
    else:
        process = launch(*SERVE, **environment(shared_dsn, **listens))
    try:
        wait_for(lambda: len(footprint(place)[1]) == 2)
        before = footprint(place)
        for _ in range(2):
            found = await examine(wrong=False, **listens)
            assert f"solisync {__version__} is running on unix:" in found["ok", "port"]
            assert "it is served on" in found["ok", "console"]
        assert footprint(place) == before
        assert process.stop() == 0
    finally:
        process.popen.kill()


@pytest.mark.parametrize(
    "kind", ["tcp:{}", "tcp:{}:interface=127.0.0.1", r"tcp6:{}:interface=\:\:1", "tcp6:{}", "ssl:{}"]
)
async def test_second_run_finds_the_same_at_a_port(examine, place, kind, hasty):
    """A free port stays free, and one in use stays in use."""
    file = certificate_of_this_machine(place)
    family, address = (socket.AF_INET6, "::1") if "6" in kind else (socket.AF_INET, "127.0.0.1")
    with socket.socket(family) as other:
        other.bind((address, 0))
        port = other.getsockname()[1]
        where = kind.format(port) + (f":privateKey={file}:certKey={file}" if kind == "ssl:{}" else "")
        for expected, in_use in (("is free", False), ("in use by another program", True)):
            if in_use:
                other.listen()
            for _ in range(2):
                found = await examine(wrong=in_use, SOLISYNC_LISTEN=where)
                assert expected in found["wrong" if in_use else "ok", "port"]


async def test_service_of_the_data_directory_at_another_port_is_noted(examine, launch, reactor, initialized, place):
    """Without the settings of the service, the doctor looks at the default port."""
    process = start(launch, *SOLISYNC, data_dir=initialized(place / "data"), endpoint=f"unix:{place}/http")
    wait_for(lambda: "the database is open" in process.log)
    for _ in range(2):
        where = f"tcp:{free_port()}:interface=127.0.0.1"
        found = await examine(wrong=False, DATABASE_URL="", SOLISYNC_DATA_DIR=place / "data", SOLISYNC_LISTEN=where)
        assert f"a service uses {place}/data, and serves elsewhere" in found["note", "port"]
    assert process.stop() == 0


async def test_endpoint_of_another_kind_is_not_checked(examine):
    """A plugin may bring kinds of endpoints that the doctor can't ask."""
    found = await examine(wrong=False, SOLISYNC_LISTEN="stdio:")
    assert "not checked, because stdio:" in found["note", "port"]


async def test_privileged_port_is_found(examine, monkeypatch):
    """Only root may listen there, unless the kernel's limit is lower."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(ports, "_first_free_to_all", lambda: 1024)
    where = "tcp:1023:interface=127.0.0.1"
    assert "Permission denied" in (await examine(SOLISYNC_LISTEN=where))["wrong", "port"]
    monkeypatch.setattr(ports, "_first_free_to_all", lambda: 0)
    assert "is free" in (await examine(wrong=False, SOLISYNC_LISTEN=where))["ok", "port"]


async def test_check_of_a_unix_socket_leaves_no_file(examine, place):
    """Peers at a unix socket need no trusted proxies."""
    found = await examine(wrong=False, SOLISYNC_LISTEN=f"unix:{place}/socket")
    assert "is free" in found["ok", "port"]
    assert "unix socket" in found["ok", "proxy"]
    assert [*place.iterdir()] == []


@pytest.mark.parametrize(
    ("listen", "proxies", "level"),
    [
        ("tcp:{port}:interface=127.0.0.1", "", "note"),
        ("tcp:{port}:interface=127.0.0.1", "127.0.0.1", "ok"),
        ("tcp:{port}", "", "ok"),
        ("tcp:{port}", "10.0.0.0/8", "ok"),
        ("tcp:{port}", "0.0.0.0/0", "wrong"),
        ("tcp:{port}", "10.0.0.1, ::/0", "wrong"),
    ],
)
async def test_trusted_proxies_are_checked_against_the_endpoint(examine, listen, proxies, level):
    """Trusting every address is an error; a loopback service without trusted proxies gets a note."""
    environ = {"SOLISYNC_LISTEN": listen.format(port=free_port()), "SOLISYNC_TRUSTED_PROXIES": proxies}
    assert (level, "proxy") in await examine(wrong=level == "wrong", **environ)


@pytest.mark.parametrize(("limit", "noted"), [("10/60", False), ("5/30", False), ("11/60", True), ("10/59", True)])
async def test_wider_rate_limit_is_noted(examine, limit, noted):
    """A limit above the default helps attackers who guess passwords."""
    assert (("note", "limit") in await examine(wrong=False, SOLISYNC_AUTH_LIMIT=limit)) is noted


async def test_missing_embedded_database_is_fine(examine, place):
    """The first start makes it. The doctor checks its disk and creates nothing."""
    found = await examine(wrong=False, DATABASE_URL="", SOLISYNC_DATA_DIR=place / "not" / "yet")
    assert "the first start of the service creates it" in found["note", "database"]
    assert "are free" in found["ok", "disk"]
    assert [*place.iterdir()] == []


async def test_full_disk_is_found(examine, place, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda where: SimpleNamespace(free=2**30 - 1))
    assert "1024.0 MiB are free" in (await examine(DATABASE_URL="", SOLISYNC_DATA_DIR=place))["wrong", "disk"]


async def test_unreachable_database_is_found(examine):
    """All other checks still run."""
    found = await examine(DATABASE_URL=f"host=127.0.0.1 port={free_port()}")
    assert "can't reach the database" in found["wrong", "database"]
    assert "?" not in found["wrong", "database"]  # libpq asks back
    assert ("ok", "port") in found


async def test_read_only_database_is_found(examine, postgres, empty_database):
    """A standby's database is one."""
    run_sql(empty_database, f"ALTER DATABASE {name_of(empty_database)} SET default_transaction_read_only = on")
    assert "read-only" in (await examine(DATABASE_URL=empty_database))["wrong", "database"]


async def test_encoding_other_than_utf_8_is_found(examine, postgres):
    """Names of players may have any character."""
    run_sql(postgres.dsn, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc TEMPLATE template0")
    found = await examine(DATABASE_URL=postgres.dsn.replace("dbname=postgres", "dbname=latin"))
    assert "LATIN1" in found["wrong", "database"]
    run_sql(postgres.dsn, "DROP DATABASE latin WITH (FORCE)")


async def test_doctor_counts_the_connections_that_a_node_may_take(examine, shared_dsn):
    """A process needs twice the connections that it keeps and one for live events; a reload adds a process."""
    settings = {"SOLISYNC_DATABASE_CONNECTIONS": "50", "SOLISYNC_WORKERS": "2"}
    found = await examine(DATABASE_URL=shared_dsn, **settings)
    assert "a node may take 303, and others 20" in found["wrong", "database"]
    settings["SOLISYNC_DATABASE_CONNECTIONS"] = "40"
    assert ("wrong", "database") not in await examine(wrong=False, DATABASE_URL=shared_dsn, **settings)


@pytest.mark.parametrize("limited", ["ROLE clerk", "DATABASE {name}"])
async def test_doctor_finds_a_connection_limit_below_what_a_node_may_take(examine, migrated_database, clerk, limited):
    """The limits of the role and the database count like the server's; superusers have none."""
    name = parse_dsn(migrated_database)["dbname"]
    run_sql(migrated_database, f"{ROWS}; GRANT CREATE ON SCHEMA public TO clerk")
    for limit, is_wrong in ((10, True), (50, True), (51, False)):
        run_sql(migrated_database, f"ALTER {limited.format(name=name)} CONNECTION LIMIT {limit}")
        found = await examine(wrong=is_wrong, DATABASE_URL=clerk, SOLISYNC_WORKERS="2")
        assert (("wrong", "database") in found) is is_wrong
    assert ("wrong", "database") not in await examine(wrong=False, DATABASE_URL=migrated_database)


@pytest.mark.parametrize(
    ("applied", "level", "advice"),
    [
        (0, "note", f"not yet at {LATEST} run: solisync --migrate"),
        (41, "note", "stop all nodes of 1.0.0, then run: solisync --migrate"),
        (LATEST - 1, "note", f"not yet at {LATEST} run: solisync --migrate"),
        (9999, "note", "upgrade"),
    ],
)
async def test_schema_of_another_version_is_noted(examine, empty_database, reactor, applied, level, advice):
    """The finding names the remedy; the doctor doesn't change the schema."""
    if applied:
        await migrate(reactor, empty_database, [each for each in load_migrations() if each.number <= applied])
    if applied > LATEST:
        run_sql(empty_database, "INSERT INTO schema_migrations VALUES (9999, '9999_new.sql', '')")
    assert advice in (await examine(wrong=False, DATABASE_URL=empty_database))[level, "schema"]


async def test_missing_rights_are_found(examine, migrated_database, clerk):
    """A role needs rights on the tables. Without the right to create tables, the owner applies migrations."""
    run_sql(migrated_database, ROWS)
    assert "may not create tables" in (await examine(wrong=False, DATABASE_URL=clerk))["note", "rights"]
    run_sql(migrated_database, "GRANT CREATE ON SCHEMA public TO clerk")
    assert ("ok", "rights") in await examine(wrong=False, DATABASE_URL=clerk)
    run_sql(migrated_database, "REVOKE DELETE ON replays FROM clerk")
    assert "may not use replays" in (await examine(DATABASE_URL=clerk))["wrong", "rights"]


@pytest.mark.parametrize(
    ("seconds", "level", "says"),
    [(0, "ok", "agree"), (1.9, "ok", "agree"), (2.1, "wrong", "2.1 s ahead of"), (-9, "wrong", "behind")],
)
def test_clocks_that_differ_are_found(seconds, level, says):
    """The clocks differ by more than two seconds, not counting the time of the query."""
    asking = timedelta(seconds=0.5)
    ahead = timedelta(seconds=seconds)
    finding = database_checks.clock(ahead, -ahead - asking)
    assert (finding.level, says in finding.text) == (level, True)


def test_doctor_exits_with_1_on_errors(shared_dsn):
    """Standard output has the list; standard error reports that there are errors."""
    environ = {"DATABASE_URL": shared_dsn, "SOLISYNC_LISTEN": f"tcp:{free_port()}"}
    assert run(*SOLISYNC, "doctor", **environ).status == 0
    done = run(*SOLISYNC, "doctor", SOLISYNC_LISTENING="tcp:1", **environ)
    assert (done.status, done.err) == (1, ["solisync: found 1 problem"])
    assert "did you mean SOLISYNC_LISTEN?" in done.out[1]


def name_of(dsn):
    return dsn.partition("dbname=")[2]


async def test_too_few_files_for_streams_are_found(examine, shared_dsn, monkeypatch):
    """A stream may take two file descriptors. A service without streams gets no such finding."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (512, 2_512))
    found = await examine(wrong=False, DATABASE_URL=shared_dsn, SOLISYNC_STREAMS="1001")
    assert "2,512 open files are enough for 1,000 streams, not for 1,001" in found["note", "streams"]
    assert ("ok", "streams") in await examine(wrong=False, DATABASE_URL=shared_dsn, SOLISYNC_STREAMS="1000")
    found = await examine(wrong=False, DATABASE_URL=shared_dsn, SOLISYNC_STREAMS="0")
    assert not [subject for _, subject in found if subject == "streams"]


async def test_unreachable_bus_database_is_found(examine, shared_dsn):
    found = await examine(DATABASE_URL=shared_dsn, SOLISYNC_BUS_DATABASE_URL="host=127.0.0.1 port=1 dbname=none")
    assert "can't notify each other" in found["wrong", "bus"]
    assert ("ok", "bus") in await examine(wrong=False, DATABASE_URL=shared_dsn, SOLISYNC_BUS_DATABASE_URL=shared_dsn)


def certificate_of_this_machine(place):
    """Write a certificate for 127.0.0.1, which vouches for itself, with its key; return the file."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    signed = builder.add_extension(names, critical=True).sign(key, hashes.SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (place / "both.pem").write_bytes(secret + signed.public_bytes(Encoding.PEM))
    return place / "both.pem"


async def test_address_of_the_site_is_asked(examine, reactor, place, monkeypatch):
    """The service must answer there over TLS; an address where another program or none answers gets a note."""
    file = certificate_of_this_machine(place)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    root = Resource()
    both = ssl.PrivateCertificate.loadPEM(file.read_bytes())
    port = reactor.listenSSL(0, Site(root), both.options(), interface="127.0.0.1")
    url = f"https://127.0.0.1:{port.getHost().port}"
    given = {"wrong": False, "JWT_SECRET": SECRET, "SOLISYNC_SITE_URL": url}
    try:
        found = await examine(**given)
        assert f"no solisync answers at {url}/health" in found["note", "site"]
        root.putChild(b"health", Data(b'{"status": "ok", "version": "1.2.3"}', "application/json"))
        found = await examine(**given)
        assert f"solisync 1.2.3 answers at {url}" in found["ok", "site"]
    finally:
        await port.stopListening()
    assert ("note", "site") in await examine(**given)
    assert "the pages are off" in (await examine(**given, SOLISYNC_PAGES="off"))["note", "site"]


async def test_role_that_cannot_back_up_is_found_with_the_grant_that_it_lacks(examine, migrated_database, clerk):
    """pg_dump reads each sequence, and tables of other schemas too. The advice is enough."""
    run_sql(migrated_database, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk")
    sequences = "may not read account_history_id_seq, admin_acts_id_seq, "
    grant = "GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO clerk"
    found = (await examine(DATABASE_URL=clerk))["wrong", "backup"]
    assert f"this role can't back up: it {sequences}" in found
    assert found.endswith(grant)
    run_sql(migrated_database, grant)
    assert ("wrong", "backup") not in await examine(wrong=False, DATABASE_URL=clerk)
    run_sql(migrated_database, 'CREATE SCHEMA "Other"; CREATE TABLE "Other".notes ()')
    grant = 'GRANT USAGE ON SCHEMA "Other" TO clerk; GRANT SELECT ON ALL TABLES IN SCHEMA "Other" TO clerk'
    found = (await examine(DATABASE_URL=clerk))["wrong", "backup"]
    assert found.endswith(f"may not read notes {grant}")
    run_sql(migrated_database, grant)
    assert ("wrong", "backup") not in await examine(wrong=False, DATABASE_URL=clerk)


async def test_role_whose_statements_postgresql_logs_is_noted(examine, migrated_database, clerk):
    """The advice is enough. The embedded database logs no statements."""
    run_sql(migrated_database, ROWS)
    assert ("note", "log") not in await examine(wrong=False, DATABASE_URL=clerk)
    logging = {"log_min_duration_statement": "0", "log_min_error_statement": "error", "log_statement": "mod"}
    for name, value in logging.items():
        run_sql(migrated_database, f"ALTER ROLE clerk SET {name} = {value}")
    found = (await examine(wrong=False, DATABASE_URL=clerk))["note", "log"]
    advised = found.partition("as a superuser: ")[2].removesuffix("; then restart")
    assert [statement.split()[4] for statement in advised.split("; ")] == sorted(logging)
    run_sql(migrated_database, advised)
    assert ("note", "log") not in await examine(wrong=False, DATABASE_URL=clerk)
    run_sql(migrated_database, "ALTER ROLE clerk SET log_statement = ddl")
    assert ("note", "log") not in await examine(wrong=False, DATABASE_URL=clerk)

"""Settings: read from a mapping, options first, all problems together (docs/configuration.md "Configuration")."""

import os
from dataclasses import fields
from pathlib import Path

import pytest

from solisync.access.rate_limit import AUTH, Limit
from solisync.errors import SettingsError
from solisync.settings import values
from solisync.settings.settings import ServingSettings, Settings, add_env_file
from solisync.settings.table import TABLE
from solisync.settings.values import without_line_end
from tests.harness.constants import PREVIOUS_SECRET, SECRET

GIVEN = {"JWT_SECRET": SECRET}


def read(environ=None, options=None, kind=ServingSettings):
    return kind.from_environ(GIVEN | (environ or {}), options)


def problems(environ=None, options=None, kind=ServingSettings):
    with pytest.raises(SettingsError) as caught:
        read(environ, options, kind)
    return caught.value.problems


def test_defaults_are_the_documented_ones():
    """Only the secret is required."""
    settings = read()
    assert settings.jwt_secret == SECRET.encode()
    assert settings.database_url is None
    assert settings.listen == "tcp:8080"
    assert (settings.trusted_proxies, settings.cors_origins) == ((), frozenset())
    assert (settings.database_connections, settings.stop_seconds, settings.prepared_statements) == (8, 10, True)
    assert settings.analytics_days is None
    assert settings.auth_limit == AUTH


def test_user_without_a_home_has_the_data_directory_of_root(monkeypatch):
    """An image may run with any user id. platformdirs fails for such a user, even where a DATABASE_URL is set."""
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("getuid", "geteuid"):
        monkeypatch.setattr(os, name, lambda: 4_000_000)
    assert values.default_data_dir() == "/var/lib/solisync"


def test_empty_variable_counts_as_unset():
    """Shells and containers may pass on empty variables."""
    assert read({setting.variable: "" for setting in TABLE} | GIVEN) == read()


def test_repr_shows_neither_secret_nor_dsn():
    shown = repr(read({"DATABASE_URL": "postgresql://u:canary@h/d"}))
    assert SECRET not in shown
    assert "canary" not in shown


@pytest.mark.parametrize(
    "origin", ["capacitor://localhost", "tauri://localhost", "ionic://localhost:8100", "app://Game", "http://127.0.0.1"]
)
def test_origins_of_apps_are_accepted(origin):
    """An app in a web view may have its own scheme, whose host may have capitals."""
    assert read({"SOLISYNC_CORS_ORIGINS": origin}).cors_origins == {origin}


@pytest.mark.parametrize(
    ("origin", "sent"),
    [
        ("https://Play.Example.org", "https://play.example.org"),
        ("HTTPS://play.example.org:443", "https://play.example.org"),
        ("http://localhost:80", "http://localhost"),
        ("http://localhost:0443", "http://localhost:443"),
        ("https://play.example.org/", "https://play.example.org"),
        ("https://ann@play.example.org/game?x#y", "https://play.example.org"),
        ("https://straße.example", "https://xn--strae-oqa.example"),
        ("http://[0:0::A]:80", "http://[::a]"),
        ("Capacitor://localhost/", "capacitor://localhost"),
    ],
)
def test_origin_that_no_browser_sends_is_refused_with_the_one_that_it_sends(origin, sent):
    """It would match no request."""
    problem = f"SOLISYNC_CORS_ORIGINS must list origins as browsers send them: {sent}, not {origin!r}"
    assert problems({"SOLISYNC_CORS_ORIGINS": f"https://a.example, {origin}"}) == [problem]
    assert read({"SOLISYNC_CORS_ORIGINS": sent}).cors_origins == {sent}


def test_endpoint_of_the_proxy_protocol_is_refused():
    """The service would take every client for HAProxy itself; the line says how HAProxy names clients."""
    (problem,) = problems({"SOLISYNC_LISTEN": "haproxy:tcp:8080"})
    assert problem.startswith("SOLISYNC_LISTEN can't be haproxy:, because")
    assert "X-Forwarded-For" in problem
    assert "option forwardfor" in problem


@pytest.mark.parametrize(
    ("length", "fine"),
    [(31, False), (32, True)],
)
def test_secret_has_at_least_32_bytes(length, fine):
    """Bytes count, not characters."""
    if fine:
        assert len(read({"JWT_SECRET": "é" * (length // 2)}).jwt_secret) == length
    assert (problems({"JWT_SECRET": "x" * length}) if not fine else []) == (
        [] if fine else ["JWT_SECRET must hold at least 32 bytes, it has 31"]
    )


@pytest.mark.parametrize(
    "key",
    [
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx ann@example",
        '{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMko"}',
    ],
)
def test_key_of_another_kind_is_refused_as_a_secret(key):
    """PyJWT refuses to sign with it, so the service doesn't start."""
    assert problems({"JWT_SECRET": key}) == ["JWT_SECRET is a key or a certificate: use random text"]


@pytest.mark.parametrize(
    ("content", "kept"),
    [(b"x\n", b"x"), (b"x\r\n", b"x"), (b"x", b"x"), (b"x\r", b"x\r"), (b" x \n\n", b" x \n"), (b"\n", b"")],
)
def test_secret_file_loses_only_its_line_end(content, kept):
    """One LF or CR LF is removed."""
    assert without_line_end(content) == kept


def test_secret_may_come_from_a_file(tmp_path):
    """JWT_SECRET_FILE holds any bytes. Both variables together are an error."""
    file = tmp_path / "secret"
    file.write_bytes(b"\xff" * 32 + b"\n")
    variables = {"JWT_SECRET": "", "JWT_SECRET_FILE": str(file)}
    assert read(variables).jwt_secret == b"\xff" * 32
    assert problems(variables | GIVEN) == ["JWT_SECRET and JWT_SECRET_FILE are both set: keep one"]
    file.write_bytes(b"\xff" * 31 + b"\r\n")
    assert problems(variables) == ["JWT_SECRET_FILE must hold at least 32 bytes, it has 31"]


def test_previous_secret_has_the_same_rules(tmp_path):
    """The previous secret has the same minimum length and sources, and must differ from the current one."""
    file = tmp_path / "secret"
    file.write_text(PREVIOUS_SECRET + "\n")
    assert read().jwt_secret_previous is None
    assert read({"JWT_SECRET_PREVIOUS": PREVIOUS_SECRET}).jwt_secret_previous == PREVIOUS_SECRET.encode()
    variables = {"JWT_SECRET_PREVIOUS": SECRET}
    assert read(variables, {"jwt-secret-previous-file": str(file)}).jwt_secret_previous == PREVIOUS_SECRET.encode()
    (same,) = problems(variables)
    assert same.startswith("JWT_SECRET_PREVIOUS must differ from JWT_SECRET")
    assert SECRET not in same
    (short,) = problems({"JWT_SECRET_PREVIOUS": "x" * 31})
    assert short == "JWT_SECRET_PREVIOUS must hold at least 32 bytes, it has 31"
    assert len(problems(variables | {"JWT_SECRET_PREVIOUS_FILE": str(file)})) == 1


def test_environment_overrides_the_env_file(tmp_path):
    """A variable and its _FILE form are never combined across both; an empty variable counts as unset."""
    file = tmp_path / "solisync.env"
    file.write_text("JWT_SECRET_FILE=/none\nSOLISYNC_WORKERS=2\nSOLISYNC_LISTEN=unix:/file\nPGSSLMODE=require\n")
    environ = {"JWT_SECRET": SECRET, "SOLISYNC_WORKERS": "3", "SOLISYNC_LISTEN": ""}
    add_env_file(environ, str(file))
    expected = {"SOLISYNC_WORKERS": "3", "SOLISYNC_LISTEN": "unix:/file", "PGSSLMODE": "require"}
    assert environ == {"JWT_SECRET": SECRET, **expected}
    add_env_file(environ, None)
    with pytest.raises(SettingsError) as caught:
        add_env_file(environ, str(tmp_path / "none"))
    assert caught.value.problems == [f"--env-file can't be read: No such file or directory: {tmp_path}/none"]


def test_file_option_overrides_both_variables(tmp_path):
    """The options are --jwt-secret-file and --database-url-file."""
    (tmp_path / "secret").write_text("option " + SECRET)
    (tmp_path / "dsn").write_text("dbname=option\n")
    options = {"jwt-secret-file": str(tmp_path / "secret"), "database-url-file": str(tmp_path / "dsn")}
    settings = read({"DATABASE_URL": "nonsense", "JWT_SECRET_FILE": "/none"}, options)
    assert settings.jwt_secret == b"option " + SECRET.encode()
    assert settings.database_url == "dbname=option"


def test_unreadable_file_is_one_problem():
    """The file is named; its missing content is no second problem."""
    found = problems({"JWT_SECRET": "", "JWT_SECRET_FILE": "/none/jwt-secret", "DATABASE_URL_FILE": "/none/jwt-secret"})
    assert found == [f"{name} can't be read: No such file or directory: /none/jwt-secret" for name in FILES]
    assert len(problems({"DATABASE_URL_FILE": "/none/jwt-secret"}, kind=Settings)) == 1


FILES = ("JWT_SECRET_FILE", "DATABASE_URL_FILE")


def test_empty_dsn_file_is_a_problem(tmp_path):
    """An empty file must not silently select the embedded database."""
    (tmp_path / "dsn").write_text("\n")
    assert problems({"DATABASE_URL_FILE": str(tmp_path / "dsn")}) == ["DATABASE_URL_FILE is empty"]


@pytest.mark.parametrize("variable", ["DATABASE_URL", "SOLISYNC_BUS_DATABASE_URL"])
def test_missing_root_certificate_is_a_problem(tmp_path, variable):
    """The service could never verify its server."""
    url = f"postgresql://u:canary@db1/d?sslmode=verify-full&sslrootcert={tmp_path}/none"
    (problem,) = problems({variable: url})
    assert problem.startswith(f"{variable} verifies the server by {tmp_path}/none, which doesn't exist")
    assert "canary" not in problem


def test_unknown_parameter_of_an_endpoint_is_named():
    (problem,) = problems({"SOLISYNC_LISTEN": "tcp:8080:iface=127.0.0.1"})
    assert problem.endswith("'tcp:8080:iface=127.0.0.1': there is no parameter 'iface'")


@pytest.mark.parametrize("variable", ["SOLISYNC_LISTEN", "SOLISYNC_ADMIN_LISTEN", "SOLISYNC_METRICS_LISTEN"])
@pytest.mark.parametrize(
    ("given", "read_as"),
    [
        ("tcp:8080:interface=::1", r"tcp:8080:interface=\:\:1"),
        ("tcp6:8080:interface=2001:db8::7:backlog=9", r"tcp6:8080:interface=2001\:db8\:\:7:backlog=9"),
        (r"tcp:8080:interface=\:\:1", r"tcp:8080:interface=\:\:1"),
        ("tcp:8080:interface=127.0.0.1:backlog=9", "tcp:8080:interface=127.0.0.1:backlog=9"),
    ],
)
def test_ipv6_address_of_an_endpoint_needs_no_backslashes(variable, given, read_as):
    """Twisted's descriptions separate their parts by colons, too."""
    if given.startswith("tcp6:") and variable == "SOLISYNC_ADMIN_LISTEN":
        (problem,) = problems({variable: given})
        assert "is neither unix:, systemd: nor tcp:" in problem
    else:
        assert getattr(read({variable: given}), variable.removeprefix("SOLISYNC_").lower()) == read_as


def test_path_in_the_address_of_the_site_is_refused_with_the_reason():
    (problem,) = problems({"SOLISYNC_SITE_URL": "https://example.org/solitaire"})
    assert problem.endswith("below a path, only the API works, because pages and links begin at the root of a host")


def test_wrong_dsn_is_not_repeated():
    """A DSN that libpq can't read may still hold a password."""
    (problem,) = problems({"DATABASE_URL": "canary password"})
    assert problem.startswith("DATABASE_URL is neither")
    assert "canary" not in problem


def test_commands_need_neither_a_secret_nor_an_endpoint():
    """A command reads only the settings that it needs, so that it has no secret to sign with."""
    settings = read({"JWT_SECRET": "", "JWT_SECRET_FILE": "/none", "SOLISYNC_LISTEN": "bogus:"}, kind=Settings)
    assert not hasattr(settings, "jwt_secret")


def test_every_field_has_a_row_and_every_row_a_field():
    """The table is the only list of settings."""
    assert {setting.field for setting in TABLE} == {field.name for field in fields(ServingSettings)}


LINK_C = ("C", "mailto:c")


@pytest.mark.parametrize(
    ("variable", "value", "field", "expected"),
    [
        ("SOLISYNC_DATABASE_CONNECTIONS", "1", "database_connections", 1),
        ("SOLISYNC_DATABASE_CONNECTIONS", "1000", "database_connections", 1000),
        ("SOLISYNC_AUTH_LIMIT", "1/1", "auth_limit", Limit("auth", 1, 1)),
        ("SOLISYNC_AUTH_LIMIT", "1000/3600", "auth_limit", Limit("auth", 1000, 3600)),
        ("SOLISYNC_STOP_SECONDS", "0", "stop_seconds", 0.0),
        ("SOLISYNC_STOP_SECONDS", "3600", "stop_seconds", 3600.0),
        ("SOLISYNC_PREPARED_STATEMENTS", "off", "prepared_statements", False),
        ("SOLISYNC_ANALYTICS_DAYS", "1", "analytics_days", 1),
        ("SOLISYNC_ANALYTICS_DAYS", "36500", "analytics_days", 36_500),
        ("SOLISYNC_HISTORY_DAYS", "0", "history_days", 0),
        ("SOLISYNC_HISTORY_DAYS", "3650", "history_days", 3_650),
        ("SOLISYNC_DATA_DIR", "~/x", "data_dir", Path.home() / "x"),
        ("SOLISYNC_CORS_ORIGINS", "https://a.example, http://[::1]:8080", "cors_origins", {"https://a.example", "http://[::1]:8080"}),
        ("SOLISYNC_LISTEN", "tcp:65535:interface=\\:\\:1", "listen", "tcp:65535:interface=\\:\\:1"),
        ("SOLISYNC_LISTEN", "unix:/run/solisync.sock", "listen", "unix:/run/solisync.sock"),
        ("SOLISYNC_SITE_NAME", "Ünï ♠" + "x" * 35, "site_name", "Ünï ♠" + "x" * 35),
        ("SOLISYNC_SITE_URL", "https://play.example.org/", "site_url", "https://play.example.org"),
        ("SOLISYNC_SITE_LINKS", "", "site_links", ()),
        ("SOLISYNC_SITE_LINKS", "A=/a", "site_links", (("A", "/a"),)),
        ("SOLISYNC_SITE_LINKS", "A b = https://a/%2C, C=mailto:c", "site_links", (("A b", "https://a/%2C"), LINK_C)),
        ("SOLISYNC_SITE_LINKS", ",".join(["A=/"] * 8), "site_links", (("A", "/"),) * 8),
    ],
)  # fmt: skip
def test_value_at_the_bound_is_accepted(variable, value, field, expected):
    assert getattr(read({variable: value}), field) == expected


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SOLISYNC_DATABASE_CONNECTIONS", "0"),
        ("SOLISYNC_DATABASE_CONNECTIONS", "1001"),
        ("SOLISYNC_DATABASE_CONNECTIONS", "0000000010"),
        ("SOLISYNC_DATABASE_CONNECTIONS", "1" * 5000),
        ("SOLISYNC_DATABASE_CONNECTIONS", "٣"),
        ("SOLISYNC_AUTH_LIMIT", "0/60"),
        ("SOLISYNC_AUTH_LIMIT", "1001/60"),
        ("SOLISYNC_AUTH_LIMIT", "10/0"),
        ("SOLISYNC_AUTH_LIMIT", "10/3601"),
        ("SOLISYNC_AUTH_LIMIT", "10"),
        ("SOLISYNC_AUTH_LIMIT", "off"),
        ("SOLISYNC_AUTH_LIMIT", "1\n/60"),
        ("SOLISYNC_AUTH_LIMIT", "٣/60"),
        ("SOLISYNC_STOP_SECONDS", "-1"),
        ("SOLISYNC_STOP_SECONDS", "3600.1"),
        ("SOLISYNC_STOP_SECONDS", "nan"),
        ("SOLISYNC_PREPARED_STATEMENTS", "yes"),
        ("SOLISYNC_ANALYTICS_DAYS", "0"),
        ("SOLISYNC_ANALYTICS_DAYS", "36501"),
        ("SOLISYNC_HISTORY_DAYS", "-1"),
        ("SOLISYNC_HISTORY_DAYS", "3651"),
        ("SOLISYNC_DATA_DIR", "~no-such-user/x"),
        ("SOLISYNC_CORS_ORIGINS", "https://a.example/"),
        ("SOLISYNC_CORS_ORIGINS", "*"),
        ("SOLISYNC_CORS_ORIGINS", "null"),
        ("SOLISYNC_CORS_ORIGINS", "file://"),
        ("SOLISYNC_CORS_ORIGINS", "https://*.example.org"),
        ("SOLISYNC_CORS_ORIGINS", "https://a.example:65536"),
        ("SOLISYNC_TRUSTED_PROXIES", "10.0.0.0/33"),
        ("SOLISYNC_LISTEN", "tcp:65536"),
        ("SOLISYNC_LISTEN", "8080"),
        ("SOLISYNC_LISTEN", "unix"),
        ("SOLISYNC_LISTEN", "tcp:x"),
        ("SOLISYNC_LISTEN", "bogus:"),
        ("SOLISYNC_LISTEN", "ssl:0:privateKey=/none.pem"),
        ("SOLISYNC_LISTEN", "ssl:0:privateKey=/proc/version"),
        ("SOLISYNC_LISTEN", "systemd:domain=INET:index=0"),
        ("SOLISYNC_SITE_NAME", "x" * 41),
        ("SOLISYNC_SITE_NAME", "a\nb"),
        ("SOLISYNC_SITE_NAME", "a\u202eb"),
        ("SOLISYNC_SITE_NAME", " "),
        ("SOLISYNC_SITE_LINKS", ",".join(["A=/"] * 9)),
        ("SOLISYNC_SITE_URL", "http://play.example.org"),
        ("SOLISYNC_SITE_URL", "https://play.example.org/game"),
        ("SOLISYNC_SITE_URL", "play.example.org"),
        ("SOLISYNC_SITE_LINKS", "A"),
        ("SOLISYNC_SITE_LINKS", "=/a"),
        ("SOLISYNC_SITE_LINKS", "A="),
        ("SOLISYNC_SITE_LINKS", "A=//evil.example"),
        ("SOLISYNC_SITE_LINKS", "A=/\\evil.example"),
        ("SOLISYNC_SITE_LINKS", "A=javascript:alert(1)"),
        ("SOLISYNC_SITE_LINKS", "A=http://a.example"),
        ("SOLISYNC_SITE_LINKS", "A=https://a b"),
    ],
)
def test_value_beyond_the_bound_is_refused(variable, value):
    """One line names the variable."""
    (problem,) = problems({variable: value})
    assert problem.startswith(f"{variable} ")
    assert "\n" not in problem


def test_wrong_option_is_named_instead_of_its_variable():
    assert problems({"SOLISYNC_DATA_DIR": "/x"}, {"data-dir": ""}) == ["--data-dir must name a directory"]

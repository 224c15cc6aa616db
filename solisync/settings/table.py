"""The table of settings: for each its variable, its option, its default, and how it is read.

Everything else follows from it: the classes in settings.py, the options of `solisync` and of `twistd solisync`,
and tests that compare it with docs/configuration.md and deploy/. Secrets have a variable and a file, never an option of
their own, because every user of a machine can list the arguments of processes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..access.rate_limit import AUTH
from . import showing as showing
from . import values as values


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row: a source of a field of Settings or ServingSettings. `read` raises ValueError for a wrong text.

    Rows of the same field stand together, and only one of them may be given.
    """

    field: str
    variable: str
    option: str = ""  # "" when there is only the variable
    metavar: str = ""
    flag: str | None = None  # for an option without a value: the text that it stands for
    read: Callable[[str], Any]
    show: Callable[[Any], str] | None = None  # the value for admins; None for a secret
    default: str | None = None
    missing: str | None = None  # for a required setting: the problem when it is not given
    help: str

    @property
    def description(self) -> str:
        """The help text of the option, with the variable and the default."""
        if self.flag:
            return f"{self.help} [{self.variable}={self.flag}]"
        return f"{self.help} [{self.variable}{f', else {self.default}' if self.default else ''}]"


TABLE = (
    Setting(
        field="jwt_secret",
        variable="JWT_SECRET",
        read=values.secret,
        missing="is not set: it signs the players' tokens and needs at least 32 bytes,"
        " for example the output of: openssl rand -hex 32",
        help="the secret that signs tokens (at least 32 bytes)",
    ),
    Setting(
        field="jwt_secret",
        variable="JWT_SECRET_FILE",
        option="jwt-secret-file",
        metavar="FILE",
        read=values.secret_file,
        help="a file with the secret that signs tokens, instead of JWT_SECRET (at least 32 bytes)",
    ),
    Setting(
        field="jwt_secret_previous",
        variable="JWT_SECRET_PREVIOUS",
        read=values.secret,
        help="a second secret whose tokens are accepted, for changing JWT_SECRET (at least 32 bytes)",
    ),
    Setting(
        field="jwt_secret_previous",
        variable="JWT_SECRET_PREVIOUS_FILE",
        option="jwt-secret-previous-file",
        metavar="FILE",
        read=values.secret_file,
        help="a file with a second secret whose tokens are accepted, for changing JWT_SECRET (at least 32 bytes)",
    ),
    Setting(
        field="database_url",
        variable="DATABASE_URL",
        read=values.dsn,
        show=showing.server,
        help="the database to use (default: an embedded PostgreSQL)",
    ),
    Setting(
        field="database_url",
        variable="DATABASE_URL_FILE",
        option="database-url-file",
        metavar="FILE",
        read=values.dsn_file,
        show=showing.server,
        help="a file with the database to use, instead of DATABASE_URL",
    ),
    Setting(
        field="data_dir",
        variable="SOLISYNC_DATA_DIR",
        option="data-dir",
        metavar="DIR",
        read=values.directory,
        show=showing.text,
        default=values.default_data_dir(),
        help="where the embedded PostgreSQL keeps its data",
    ),
    Setting(
        field="listen",
        variable="SOLISYNC_LISTEN",
        option="listen",
        metavar="ENDPOINT",
        read=values.endpoint,
        show=showing.text,
        default="tcp:8080",
        help="where to serve, a Twisted endpoint: tcp:8080:interface=127.0.0.1, unix:/run/solisync.sock, …",
    ),
    Setting(
        field="trusted_proxies",
        variable="SOLISYNC_TRUSTED_PROXIES",
        option="trusted-proxies",
        metavar="NETWORKS",
        read=values.networks,
        show=showing.each,
        default="",
        help="addresses or CIDR ranges of proxies whose X-Forwarded-For is trusted, separated by commas",
    ),
    Setting(
        field="cors_origins",
        variable="SOLISYNC_CORS_ORIGINS",
        option="cors-origins",
        metavar="ORIGINS",
        read=values.origins,
        show=showing.each,
        default="",
        help="origins of browser clients, like https://play.example.org, separated by commas",
    ),
    Setting(
        field="auth_limit",
        variable="SOLISYNC_AUTH_LIMIT",
        option="auth-limit",
        metavar="REQUESTS/SECONDS",
        read=values.auth_limit,
        show=showing.limit,
        default=f"{AUTH.most}/{AUTH.seconds}",
        help="how often one address may register, log in and refresh, altogether",
    ),
    Setting(
        field="pages",
        variable="SOLISYNC_PAGES",
        option="no-pages",
        flag="off",
        read=values.switch,
        show=showing.switch,
        default="on",
        help="serve no pages for players, and so no logins of browsers",
    ),
    Setting(
        field="site_name",
        variable="SOLISYNC_SITE_NAME",
        read=values.site_name,
        show=showing.text,
        default="Solitaire",
        help="the name of the site, on every page",
    ),
    Setting(
        field="site_links",
        variable="SOLISYNC_SITE_LINKS",
        read=values.site_links,
        show=showing.links,
        default="",
        help="links at the foot of every page: Name=address, separated by commas",
    ),
    Setting(
        field="public_avatars",
        variable="SOLISYNC_PUBLIC_AVATARS",
        option="public-avatars",
        flag="on",
        read=values.switch,
        show=showing.switch,
        default="off",
        help="show avatars to everybody, not only to players who are logged in",
    ),
    Setting(
        field="workers",
        variable="SOLISYNC_WORKERS",
        option="workers",
        metavar="N",
        read=values.whole(1, 64),
        show=showing.text,
        default="1",
        help="how many processes serve, for `solisync` and `twistd -n`; SIGHUP replaces them one by one",
    ),
    Setting(
        field="checkers",
        variable="SOLISYNC_CHECKERS",
        option="checkers",
        metavar="N",
        read=values.whole(0, 64),
        show=showing.text,
        default="1",
        help="how many low-priority processes check replays on this node; 0 leaves checking to other nodes",
    ),
    Setting(
        field="database_connections",
        variable="SOLISYNC_DATABASE_CONNECTIONS",
        option="database-connections",
        metavar="N",
        read=values.whole(1, 1000),
        show=showing.text,
        default="8",
        help="how many connections to the database a process keeps",
    ),
    Setting(
        field="streams",
        variable="SOLISYNC_STREAMS",
        option="streams",
        metavar="N",
        read=values.whole(0, 100_000),
        show=showing.text,
        default="10000",
        help="how many streams of live events a process serves; 0 for none",
    ),
    Setting(
        field="bus_database_url",
        variable="SOLISYNC_BUS_DATABASE_URL",
        read=values.dsn,
        show=showing.server,
        help="where LISTEN works, if DATABASE_URL leads through a pooler that shares connections",
    ),
    Setting(
        field="bus_database_url",
        variable="SOLISYNC_BUS_DATABASE_URL_FILE",
        option="bus-database-url-file",
        metavar="FILE",
        read=values.dsn_file,
        show=showing.server,
        help="a file with that, instead of SOLISYNC_BUS_DATABASE_URL",
    ),
    Setting(
        field="stop_seconds",
        variable="SOLISYNC_STOP_SECONDS",
        option="stop-seconds",
        metavar="SECONDS",
        read=values.seconds,
        show=showing.text,
        default="10",
        help="how long a stop waits for running requests",
    ),
    Setting(
        field="metrics_listen",
        variable="SOLISYNC_METRICS_LISTEN",
        option="metrics-listen",
        metavar="ENDPOINT",
        read=values.endpoint,
        show=showing.text,
        help="where Prometheus may fetch /metrics, a Twisted endpoint like tcp:9100:interface=127.0.0.1"
        " (default: nowhere)",
    ),
    Setting(
        field="admin_listen",
        variable="SOLISYNC_ADMIN_LISTEN",
        option="admin-listen",
        metavar="ENDPOINT",
        read=values.admin_endpoint,
        show=showing.text,
        help="where admins reach the console: unix:/run/solisync/admin.sock, tcp:8081:interface=127.0.0.1, …"
        " (default: nowhere)",
    ),
    Setting(
        field="admin_hosts",
        variable="SOLISYNC_ADMIN_HOSTS",
        option="admin-hosts",
        metavar="HOSTS",
        read=values.hosts,
        show=showing.each,
        default="",
        help="names under which a proxy serves the console over HTTPS, separated by commas",
    ),
    Setting(
        field="log_format",
        variable="SOLISYNC_LOG_FORMAT",
        option="log-format",
        metavar="text|json",
        read=values.log_format,
        show=showing.text,
        default="text",
        help="how to log: lines for people, or one JSON object a line",
    ),
    Setting(
        field="prepared_statements",
        variable="SOLISYNC_PREPARED_STATEMENTS",
        option="no-prepared-statements",
        flag="off",
        read=values.switch,
        show=showing.switch,
        default="on",
        help="don't prepare statements: for a PgBouncer in transaction mode, which can't keep them",
    ),
    Setting(
        field="replay_quota_mib",
        variable="SOLISYNC_REPLAY_QUOTA_MIB",
        read=values.whole(0, 1_000_000),
        show=showing.text,
        default="64",
        help="how much one account's replays may take, in MiB; 0 for no limit",
    ),
    Setting(
        field="analytics_days",
        variable="SOLISYNC_ANALYTICS_DAYS",
        read=values.whole(1, 36_500),
        show=showing.text,
        help="after how many days analytics events are deleted; unset, they are kept",
    ),
    Setting(
        field="history_days",
        variable="SOLISYNC_HISTORY_DAYS",
        read=values.whole(0, 3_650),
        show=showing.text,
        default="30",
        help="after how many days what happened to accounts is deleted; 0 to keep no history",
    ),
)


def without_option() -> str:
    """The variables that have no option, for the end of a help text."""
    return ", ".join(setting.variable for setting in TABLE if not setting.option)

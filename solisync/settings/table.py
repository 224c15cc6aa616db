"""The table of settings: the variable, the option, the default and the parser of each.

The classes in settings.py and the options of `solisync` and `twistd solisync` are made from it, and tests compare it
with docs/configuration.md and deploy/. A secret has a variable and a file, but no option, because every user of a
machine can list the arguments of processes.
"""

from collections.abc import Mapping

from ..access.rate_limit import AUTH, GUEST
from ..postgres.dsn import server_of
from . import values
from .setting import Setting, shown_limit, shown_links, shown_list, shown_switch

TABLE = (
    Setting(
        variable="JWT_SECRET",
        read=values.secret,
        missing="is not set: it signs the players' tokens and needs at least 32 bytes,"
        " for example the output of: openssl rand -hex 32",
        help="the secret that signs tokens (at least 32 bytes)",
    ),
    Setting(
        variable="JWT_SECRET_FILE",
        metavar="FILE",
        read=values.secret_file,
        help="a file with the secret that signs tokens, instead of JWT_SECRET (at least 32 bytes)",
    ),
    Setting(
        variable="JWT_SECRET_PREVIOUS",
        read=values.secret,
        help="the previous secret, whose tokens are still accepted (at least 32 bytes)",
    ),
    Setting(
        variable="JWT_SECRET_PREVIOUS_FILE",
        metavar="FILE",
        read=values.secret_file,
        help="a file with the previous secret, whose tokens are still accepted (at least 32 bytes)",
    ),
    Setting(
        variable="DATABASE_URL",
        read=values.dsn,
        show=server_of,
        help="the URL of the database (default: an embedded PostgreSQL)",
    ),
    Setting(
        variable="DATABASE_URL_FILE",
        metavar="FILE",
        read=values.dsn_file,
        show=server_of,
        help="a file with the URL of the database, instead of DATABASE_URL",
    ),
    Setting(
        variable="SOLISYNC_DATA_DIR",
        metavar="DIR",
        read=values.directory,
        show=str,
        default=values.default_data_dir(),
        help="the directory in which the embedded PostgreSQL keeps its data",
    ),
    Setting(
        variable="SOLISYNC_NEW_DATABASE",
        switch="new-database",
        flag="on",
        read=values.switch,
        show=shown_switch,
        default="off",
        help="make a new embedded database in a data directory of a service that has used another database",
    ),
    Setting(
        variable="SOLISYNC_LISTEN",
        metavar="ENDPOINT",
        read=values.endpoint,
        show=str,
        default="tcp:8080",
        help="the Twisted endpoint to serve on: tcp:8080:interface=127.0.0.1, unix:/run/solisync.sock, …",
    ),
    Setting(
        variable="SOLISYNC_TRUSTED_PROXIES",
        metavar="NETWORKS",
        read=values.networks,
        show=shown_list,
        default="",
        help="addresses or CIDR ranges of proxies whose X-Forwarded-For is trusted, separated by commas",
    ),
    Setting(
        variable="SOLISYNC_CORS_ORIGINS",
        metavar="ORIGINS",
        read=values.origins,
        show=shown_list,
        default="",
        help="origins of browser clients, like https://play.example.org, separated by commas",
    ),
    Setting(
        variable="SOLISYNC_AUTH_LIMIT",
        metavar="REQUESTS/SECONDS",
        read=values.auth_limit,
        show=shown_limit,
        default=f"{AUTH.most}/{AUTH.seconds}",
        help="the rate limit of one address for registrations, logins and refreshes together",
    ),
    Setting(
        variable="SOLISYNC_GUEST_LIMIT",
        read=values.guest_limit,
        show=shown_limit,
        default=f"{GUEST.most}/{GUEST.seconds}",
        help="the rate limit of one address for new guests (accounts without a password); 0 for no new guests",
    ),
    Setting(
        variable="SOLISYNC_GUEST_DAYS",
        read=values.whole(30, 3_650),
        show=str,
        default="180",
        help="the number of days after which an unused guest is deleted; one that was used on one day alone, after 30",
    ),
    Setting(
        variable="SOLISYNC_PAGES",
        switch="no-pages",
        flag="off",
        read=values.switch,
        show=shown_switch,
        default="on",
        help="serve no pages for players, and allow no logins of browsers",
    ),
    Setting(
        variable="SOLISYNC_SITE_NAME",
        read=values.site_name,
        show=str,
        default="Solitaire",
        help="the name of the site, on every page",
    ),
    Setting(
        variable="SOLISYNC_SITE_URL",
        read=values.site_url,
        show=str,
        help="the address of the pages for players, like https://play.example.org, for links that operators pass on",
    ),
    Setting(
        variable="SOLISYNC_SITE_LINKS",
        read=values.site_links,
        show=shown_links,
        default="",
        help="links at the foot of every page: Name=address, separated by commas",
    ),
    Setting(
        variable="SOLISYNC_PUBLIC_AVATARS",
        switch="public-avatars",
        flag="on",
        read=values.switch,
        show=shown_switch,
        default="off",
        help="show avatars to all clients, not only to players who are logged in",
    ),
    Setting(
        variable="SOLISYNC_WORKERS",
        metavar="N",
        read=values.whole(1, 64),
        show=str,
        default="1",
        help="the number of serving processes, for `solisync` and `twistd -n`; SIGHUP replaces them one by one",
    ),
    Setting(
        variable="SOLISYNC_CHECKERS",
        metavar="N",
        read=values.whole(0, 64),
        show=str,
        default="1",
        help="the number of low-priority processes that check replays; 0 leaves checking to other nodes",
    ),
    Setting(
        variable="SOLISYNC_DATABASE_CONNECTIONS",
        metavar="N",
        read=values.whole(1, 1000),
        show=str,
        default="8",
        help="the number of database connections per process",
    ),
    Setting(
        variable="SOLISYNC_STREAMS",
        metavar="N",
        read=values.whole(0, 100_000),
        show=str,
        default="10000",
        help="the maximum number of live event streams per process; 0 for no streams",
    ),
    Setting(
        variable="SOLISYNC_BUS_DATABASE_URL",
        read=values.dsn,
        show=server_of,
        help="the URL of the database without a pooler, for LISTEN, if DATABASE_URL leads to a pooler",
    ),
    Setting(
        variable="SOLISYNC_BUS_DATABASE_URL_FILE",
        metavar="FILE",
        read=values.dsn_file,
        show=server_of,
        help="a file with the URL of the database without a pooler, instead of SOLISYNC_BUS_DATABASE_URL",
    ),
    Setting(
        variable="SOLISYNC_STOP_SECONDS",
        metavar="SECONDS",
        read=values.seconds,
        show=str,
        default="10",
        help="the time that a stop waits for running requests",
    ),
    Setting(
        variable="SOLISYNC_IDLE_SECONDS",
        metavar="SECONDS",
        read=values.whole(10, 3600),
        show=str,
        default="120",
        help="the time after which an idle connection is closed; clients learn a time that is 5 seconds shorter",
    ),
    Setting(
        variable="SOLISYNC_METRICS_LISTEN",
        metavar="ENDPOINT",
        read=values.endpoint,
        show=str,
        help="the Twisted endpoint where Prometheus fetches /metrics, such as tcp:9100:interface=127.0.0.1"
        " (default: none)",
    ),
    Setting(
        variable="SOLISYNC_ADMIN_LISTEN",
        metavar="ENDPOINT",
        read=values.admin_endpoint,
        show=str,
        help="the Twisted endpoint of the console: unix:/run/solisync/admin.sock, tcp:8081:interface=127.0.0.1, …"
        " (default: none)",
    ),
    Setting(
        variable="SOLISYNC_ADMIN_HOSTS",
        metavar="HOSTS",
        read=values.hosts,
        show=shown_list,
        default="",
        help="names under which a proxy serves the console over HTTPS, separated by commas",
    ),
    Setting(
        variable="SOLISYNC_LOG_FORMAT",
        metavar="text|json",
        read=values.log_format,
        show=str,
        default="text",
        help="the format of the log: text for people, or one JSON object per line",
    ),
    Setting(
        variable="SOLISYNC_LOG_LEVEL",
        read=values.log_level,
        show=str,
        default="info",
        help="the least level of lines in the log: info, warn or error; the audit trail is always logged",
    ),
    Setting(
        variable="SOLISYNC_ACCESS_LOG",
        read=values.switch,
        show=shown_switch,
        default="on",
        help="log a line for each request",
    ),
    Setting(
        variable="SOLISYNC_PREPARED_STATEMENTS",
        switch="no-prepared-statements",
        flag="off",
        read=values.switch,
        show=shown_switch,
        default="on",
        help="don't prepare statements, for a PgBouncer in transaction mode, which can't keep them",
    ),
    Setting(
        variable="SOLISYNC_REPLAY_QUOTA_MIB",
        read=values.whole(0, 1_000_000),
        show=str,
        default="64",
        help="the space for one account's replays, in MiB; 0 for no limit",
    ),
    Setting(
        variable="SOLISYNC_ANALYTICS_DAYS",
        read=values.whole(1, 36_500),
        show=str,
        help="the number of days after which analytics events are deleted; if unset, they are kept",
    ),
    Setting(
        variable="SOLISYNC_HISTORY_DAYS",
        read=values.whole(0, 3_650),
        show=str,
        default="30",
        help="the number of days after which account history is deleted; 0 keeps no history",
    ),
)


def is_given(variable: str, environ: Mapping[str, str], options: Mapping[str, str]) -> bool:
    """Return whether a setting has a value of its own, instead of its default."""
    return any(
        environ.get(row.variable) or (row.option is not None and row.option in options)
        for row in TABLE
        if row.variable == variable
    )


def without_option() -> str:
    """The variables without an option, for the end of a help text."""
    return ", ".join(setting.variable for setting in TABLE if not setting.option)

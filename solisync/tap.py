"""The entry points for twistd: `twistd solisync` (by the plugin) and solisync.tac."""

import os
import pwd
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from twisted.application.service import IService, MultiService
from twisted.logger import ILogObserver
from twisted.python.logfile import LogFile
from twisted.python.usage import Options as TwistedOptions
from twisted.python.usage import UsageError

from twisted import __version__ as twisted_version

from . import __version__
from .errors import FatalError
from .process import logs
from .process.daemon import Daemon
from .process.entry_point import monotonic_reactor
from .service import make_daemon, make_service
from .settings.settings import ENV_FILE, ENV_FILE_HELP, ServingSettings, add_env_file, suggestion
from .settings.table import TABLE, without_option

TWISTD_LOGS = ("text", "info")  # the format and the level at which twistd's own log serves
_UNKNOWN_OPTION = re.compile(r"option (\S+) not recognized")


class Options(TwistedOptions):
    """The options of `twistd solisync`, from the table of settings; without an option, the variable counts."""

    optParameters = [  # noqa: RUF012
        *(
            [setting.option, None, None, setting.description]
            for setting in TABLE
            if setting.option and not setting.flag
        ),
        [ENV_FILE, None, None, ENV_FILE_HELP],
    ]
    optFlags = [  # noqa: RUF012
        [setting.option, None, setting.description] for setting in TABLE if setting.flag
    ]
    longdesc = (
        "The HTTP backend of a solitaire game. Settings come from the environment (the variable in brackets);"
        " options win. JWT_SECRET or a file with it is required; without DATABASE_URL an embedded PostgreSQL is used."
        f" Without an option: {without_option()}."
    )

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        """Parse the options; the error about an unknown option suggests a similar one."""
        try:
            super().parseOptions(options)
        except UsageError as error:
            unknown = _UNKNOWN_OPTION.fullmatch(str(error))
            if unknown is None:
                raise
            known = [f"--{name.rstrip('=')}" for name in self.longOpt]
            raise UsageError(f"{error}{suggestion(unknown[1], known)}") from None

    def opt_version(self) -> NoReturn:
        """Display the versions of solisync and Twisted and exit."""
        print(f"solisync {__version__} (Twisted {twisted_version})")
        sys.exit(0)

    def given(self) -> dict[str, str]:
        """The options on the command line, by name, as for ServingSettings.from_environ."""
        flags = {setting.option: setting.flag for setting in TABLE if setting.flag}
        return {
            name: flags.get(name) or value
            for name, value in self.items()
            if value is not None and value != 0 and name != ENV_FILE
        }


def makeService(options: Options) -> IService:
    """Make the service for `twistd solisync`; raises SystemExit if the settings are wrong."""
    twistd: Mapping[str, Any] = options.parent or {}
    out = sys.stdout.fileno()
    _move_home(twistd.get("uid"))
    with _plain_exit():
        add_env_file(os.environ, options[ENV_FILE])
        settings = ServingSettings.from_environ(os.environ, options.given())
        # Workers log to standard output: a daemon has none, and workers can't share a log file of twistd.
        if settings.workers > 1 and (not twistd.get("nodaemon") or twistd.get("logfile") not in (None, "-")):
            raise FatalError("solisync: several workers need the foreground and standard output: twistd -n solisync")
        daemon = make_daemon(
            settings, monotonic_reactor(), os.environ, options.given(), uid=twistd.get("uid"), log_to=out
        )
    if (settings.log_format, settings.log_level) == TWISTD_LOGS or twistd.get("logger") or twistd.get("syslog"):
        return daemon
    return _Logging(daemon, logs.observer(settings.log_format, _log_file(twistd), settings.log_level))


def service_from_environment(environ: Mapping[str, str]) -> IService:
    """Make the service for a .tac file: one process, logged by twistd. Raises SystemExit if the settings are wrong."""
    with _plain_exit():
        settings = ServingSettings.from_environ(environ)
        if settings.workers > 1 or (settings.log_format, settings.log_level) != TWISTD_LOGS:
            raise FatalError(
                "solisync: several workers, JSON logs and a log level need `twistd solisync` instead of a .tac file"
            )
        return make_service(settings, monotonic_reactor())


def _move_home(uid: int | None) -> None:
    """Set HOME to the home of the user that the process becomes, because libpq looks for files there.

    In root's home it would find files that it can't read.
    """
    if uid is None or uid == os.getuid():
        return
    try:
        os.environ["HOME"] = pwd.getpwuid(uid).pw_dir
    except KeyError:  # a user without a name has no home
        os.environ.pop("HOME", None)


@contextmanager
def _plain_exit() -> Iterator[None]:
    try:
        yield
    except FatalError as error:
        raise SystemExit(str(error)) from None  # FatalError is an Exception too: twistd would print its traceback


def _log_file(twistd: Mapping[str, Any]) -> Any:
    """The file that twistd would log to."""
    name = twistd.get("logfile")
    if name == "-" or (twistd.get("nodaemon") and not name):
        return sys.stdout
    return LogFile.fromFullPath(name or "twistd.log")


class _Logging(MultiService):
    """A service that sets the log observer of its application."""

    def __init__(self, daemon: Daemon, observer: ILogObserver) -> None:
        super().__init__()
        daemon.setServiceParent(self)
        self._observer = observer

    def setServiceParent(self, parent: Any) -> None:
        parent.setComponent(ILogObserver, self._observer)
        super().setServiceParent(parent)

"""The twistd doors: `twistd solisync` (through the plugin) and solisync.tac."""

import os
import sys
from collections.abc import Mapping
from typing import NoReturn

from twisted.application.service import IService
from twisted.python.usage import Options as TwistedOptions

from twisted import __version__ as twisted_version

from . import __version__
from .errors import CannotStart
from .service import make_service
from .settings import Settings
from .settings_table import TABLE


class Options(TwistedOptions):
    """The settings that are no secrets; without an option, its environment variable counts."""

    optParameters = [  # noqa: RUF012
        [setting.option, None, None, setting.description] for setting in TABLE if setting.option and not setting.flag
    ]
    optFlags = [  # noqa: RUF012
        [setting.option, None, setting.description] for setting in TABLE if setting.flag
    ]
    longdesc = (
        "The HTTP backend of a solitaire game. Settings come from the environment (the variable in brackets);"
        " options win. JWT_SECRET or a file with it is required; without DATABASE_URL an embedded PostgreSQL is used."
    )

    def opt_version(self) -> NoReturn:
        """Display the versions of solisync and Twisted and exit."""
        print(f"solisync {__version__} (Twisted {twisted_version})")
        sys.exit(0)

    def given(self) -> dict[str, str]:
        """What stood on the command line, as Settings.from_environ takes it."""
        flags = {setting.option: setting.flag for setting in TABLE if setting.flag}
        return {name: flags.get(name) or value for name, value in self.items() if value is not None and value != 0}


def makeService(options: Options) -> IService:
    """What twistd calls for `twistd solisync`; raises SystemExit when the settings are wrong."""
    parent: Mapping[str, int | None] = options.parent or {}
    return service_from_environment(os.environ, options.given(), uid=parent.get("uid"))


def service_from_environment(
    environ: Mapping[str, str], options: Mapping[str, str] | None = None, *, uid: int | None = None
) -> IService:
    """The service that these settings describe, on the installed reactor; raises SystemExit when they are wrong."""
    from twisted.internet import reactor  # not at import: twistd installs the one it was asked for first

    try:
        return make_service(Settings.from_environ(environ, options), reactor, uid=uid)  # type: ignore[arg-type]
    except CannotStart as error:
        raise SystemExit(str(error)) from None  # and no Exception, of which twistd prints a traceback for a .tac

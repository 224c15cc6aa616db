"""The twistd doors: `twistd solisync` (through the plugin) and solisync.tac."""

import os
from collections.abc import Mapping

from twisted.application.service import IService
from twisted.python.usage import Options as TwistedOptions

from .service import make_service
from .settings import TABLE, Settings


class Options(TwistedOptions):
    """The settings that are no secrets; without an option, its environment variable counts."""

    optParameters = [  # noqa: RUF012
        [setting.option, None, None, f"{setting.help} [{setting.variable}]"] for setting in TABLE if not setting.flag
    ]
    optFlags = [  # noqa: RUF012
        [setting.option, None, f"{setting.help} [{setting.variable}={setting.flag}]"]
        for setting in TABLE
        if setting.flag
    ]
    longdesc = (
        "The HTTP backend of a solitaire game. Settings come from the environment (the variable in brackets);"
        " options win. JWT_SECRET or a file with it is required; without DATABASE_URL an embedded PostgreSQL is used."
    )

    def given(self) -> dict[str, str]:
        """What stood on the command line, as Settings.from_environ takes it."""
        flags = {setting.option: setting.flag for setting in TABLE if setting.flag}
        return {name: flags.get(name) or value for name, value in self.items() if value is not None and value != 0}


def makeService(options: Options) -> IService:
    """What twistd calls for `twistd solisync`; raises SettingsError."""
    parent: Mapping[str, int | None] = options.parent or {}
    return service_from_environment(os.environ, options.given(), uid=parent.get("uid"))


def service_from_environment(
    environ: Mapping[str, str], options: Mapping[str, str] | None = None, *, uid: int | None = None
) -> IService:
    """The service that these settings describe, on the installed reactor; raises SettingsError."""
    from twisted.internet import reactor  # not at import: twistd installs the one it was asked for first

    return make_service(Settings.from_environ(environ, options), reactor, uid=uid)  # type: ignore[arg-type]

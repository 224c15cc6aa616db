"""Names that are no settings, commands or options, and which they may mean."""

import difflib
from collections.abc import Iterable, Iterator, Mapping

from .table import TABLE

PREFIX = "SOLISYNC_"


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: which of the `known` ones it may mean; "" if none is like it."""
    near = difflib.get_close_matches(word, [*known], 1)
    return f": did you mean {near[0]}?" if near else ""


def unknown_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that begin with PREFIX and are no settings, each with what to do about it."""
    known = [setting.variable.removeprefix(PREFIX) for setting in TABLE if setting.variable.startswith(PREFIX)]
    for name in sorted(environ):
        rest = name.removeprefix(PREFIX)
        if name != rest and rest not in known:
            near = difflib.get_close_matches(rest, known, 1)
            yield name, f"did you mean {PREFIX}{near[0]}?" if near else "remove it"

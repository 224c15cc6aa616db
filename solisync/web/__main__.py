"""`python -m solisync.web`: list the routes that handlers declare, with their rate limit, protection and handler."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from . import console, resources

ROW = "{method:7}{path:50}{limit:13}{protection:8}{handler}"


def rows() -> Iterator[str]:
    """Yield a line for each route: the players' routes first, then the console's."""
    for package in (resources, console):
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            for resource in vars(import_module(module.name)).values():
                if isinstance(resource, type) and resource.__module__ == module.name:
                    yield from _rows(resource)


def _rows(resource: type) -> Iterator[str]:
    for handler in vars(resource).values():
        if hasattr(handler, "declared"):
            method, path, facts = handler.declared
            limit = facts.get("limit")
            yield ROW.format(
                method=method,
                path=path,
                limit=limit.name if limit else "-",
                protection="token" if facts.get("protected") else "-",
                handler=f"{handler.__module__.removeprefix('solisync.web.')}:{handler.__qualname__}",
            )


if __name__ == "__main__":
    print(ROW.format(method="method", path="path", limit="limit", protection="needs", handler="handler"))
    print("\n".join(rows()))

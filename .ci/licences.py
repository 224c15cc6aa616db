"""Complete a bill of materials, and check the licences in it: `licences.py BILL.cdx.json PACKAGES docs/licences.md`.

PACKAGES is the directory of the installed packages. This needs cyclonedx-bom. A licence fails if it isn't an SPDX
expression, isn't permitted, or differs from the page. After a failure, the correct table for the page is printed.
"""

import json
import re
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from license_expression import get_spdx_licensing

PERMITTED = {
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",  # reciprocal, file by file, for changes of those files
    "PSF-2.0",
    "PostgreSQL",
    "ZPL-2.1",
}
# The packages that may have another licence; docs/licences.md gives the reasons.
PERMITTED_FOR = {"psycopg2-binary": {"LGPL-3.0-or-later"}}
# The texts that some packages have instead of an SPDX expression.
MEANT = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: GNU Library or Lesser General Public License (LGPL)": "LGPL-3.0-or-later",
}
ITSELF = "solisync"

_spdx = get_spdx_licensing()


def licence(component: dict) -> str:
    """Return the declared licence of a component as an SPDX expression; raise ValueError for none or several."""
    found = set()
    for each in component.get("licenses", ()):
        text = each.get("expression") or each["license"].get("id") or each["license"]["name"]
        found.add(MEANT.get(text, text))
    if len(found) != 1:
        raise ValueError(f"declares {', '.join(sorted(found)) or 'no licence'}")
    (expression,) = found
    if errors := _spdx.validate(expression).errors:
        raise ValueError(errors[0])
    return expression


def is_permitted(name: str, expression: str) -> bool:
    """Whether the permitted licences satisfy an expression: one of those joined by OR, all of those joined by AND."""
    permitted = PERMITTED | PERMITTED_FOR.get(name, set())
    parsed = _spdx.parse(expression)
    symbols = {each: _spdx.TRUE if each.key in permitted else _spdx.FALSE for each in parsed.symbols}
    return parsed.subs(symbols).simplify() == _spdx.TRUE


def complete(bill: dict) -> None:
    """Make solisync the subject of the bill, without the location of its wheel."""
    (main,) = (each for each in bill["components"] if each["name"] == ITSELF)
    bill["components"].remove(main)
    main.pop("externalReferences", None)
    bill["metadata"]["component"] = main | {"type": "application", "purl": f"pkg:pypi/{ITSELF}@{main['version']}"}


def brought_along(packages: Path, component: dict) -> list[dict]:
    """Return the contents of a component's wheel besides Python code, from its own bills of materials (PEP 770)."""
    name = component["name"].lower().replace("-", "_")
    found = {}
    for file in sorted(packages.glob(f"{name}-*.dist-info/sboms/*.json")):
        for each in json.loads(file.read_text("utf-8")).get("components", ()):
            if each["name"].lower().replace("-", "_") != name:
                known = {key: each[key] for key in ("type", "name", "version") if key in each}
                purl = each.get("purl", each["name"]).partition("?")[0]  # without its download address
                found[purl] = known | ({"purl": purl} if "purl" in each else {})
    return list(found.values())


def main(file: Path, packages: Path, page: Path) -> None:
    """Check a bill, and rewrite it."""
    bill = json.loads(file.read_text("utf-8"))
    complete(bill)
    for component in bill["components"]:
        if parts := brought_along(packages, component):
            component["components"] = parts
    text = json.dumps(bill, indent=2) + "\n"
    if error := JsonStrictValidator(SchemaVersion.from_version(bill["specVersion"])).validate_str(text):
        sys.exit(f"release check failed: the bill of materials is not valid: {error}")
    file.write_text(text, "utf-8")
    wrong, rows = [], {}
    for component in bill["components"]:
        name = component["name"].lower().replace("_", "-")
        try:
            rows[name] = licence(component)
        except ValueError as error:
            wrong.append(f"{name}: {error}")
        else:
            if not is_permitted(name, rows[name]):
                wrong.append(f"{name}: {rows[name]} isn't a permitted licence")
    shown = dict(re.findall(r"^\| ([a-z0-9.-]+) \| ([\w.-]+(?: \w+ [\w.-]+)*) \|", page.read_text("utf-8"), re.M))
    if shown != rows:
        print("".join(f"| {name} | {rows[name]} |\n" for name in sorted(rows)))
        other = [name for name in sorted(rows | shown) if rows.get(name) != shown.get(name)]
        wrong += [f"{page.name} has {name}: {shown.get(name)}, installed is {rows.get(name)}" for name in other]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"licences: {', '.join(sorted(set(rows.values())))}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

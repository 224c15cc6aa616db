"""The content of an installation, and its use away from the checkout."""

import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from solisync import __version__
from tests.harness.constants import ROOT
from tests.harness.processes import clean_environment, run

FORMER = "solisync/storage/former.py"  # a module of another version
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel, built by the function that pip calls, from a copy, so that the checkout stays clean."""
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    source.mkdir()
    tracked = [*ROOT.glob("*.toml"), *ROOT.glob("*.md"), *ROOT.glob("*.tac"), ROOT / "setup.py", ROOT / "MANIFEST.in"]
    tracked += [ROOT / "LICENSE"]
    for folder in ("solisync", "twisted", "migrations", "clients"):
        tracked += [
            file
            for file in (ROOT / folder).rglob("*")
            if file.is_file() and file.suffix != ".pyc" and "node_modules" not in file.parts
        ]
    for file in tracked:
        target = source / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    left = source / "build" / "lib" / FORMER  # by an earlier build in the same checkout
    left.parent.mkdir(parents=True)
    left.write_text("from . import nothing")
    subprocess.run([sys.executable, "-c", BUILD, place], cwd=source, check=True, env=clean_environment())
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installation(wheel, tmp_path_factory, full):
    """A virtual environment with the wheel in it; dependencies come from the one that runs the tests.

    The wheel is unpacked, which is how pip begins; with --fire, pip installs it completely.
    """
    place = tmp_path_factory.mktemp("installed here")
    venv.create(place, with_pip=False)
    (packages,) = place.glob("lib/python*/site-packages")
    if full:
        target = ["--target", packages, "--no-deps", "--no-index"]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *target, wheel], check=True, env=clean_environment())
    else:
        zipfile.ZipFile(wheel).extractall(packages)
    # as plain directories, without the .pth files in them: one of those leads back to the checkout
    shared = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "shared.pth").write_text("".join(f"{directory}\n" for directory in sorted(shared)))
    return place


def test_wheel_has_all_files_and_no_twisted_package(wheel):
    """A twisted/__init__.py would hide Twisted itself. The wheel has plugin, migrations, deals and pages."""
    names = set(zipfile.ZipFile(wheel).namelist())
    migrations = {f"solisync/migrations/{file.name}" for file in (ROOT / "migrations").glob("*.sql")}
    assert migrations
    others = {"solisync/py.typed", "solisync/klondike/daily.txt", "twisted/plugins/solisync_plugin.py"}
    assert others | migrations <= names
    assert {f"solisync/{file.relative_to(ROOT / 'solisync')}" for file in (ROOT / "solisync").rglob("*.py")} <= names
    pages = {f"solisync/{file.relative_to(ROOT / 'solisync')}" for file in (ROOT / "solisync" / "static").rglob("*.*")}
    client = {f"solisync/static/client/{file.name}" for file in (ROOT / "clients/javascript/src").glob("*.js")}
    assert min(len(pages), len(client)) > 5
    assert pages | client <= names
    assert [name for name in names if name.startswith("twisted/")] == ["twisted/plugins/solisync_plugin.py"]
    assert not [name for name in names if name.startswith(("tests/", "bench/"))]


def test_wheel_has_no_module_of_an_earlier_build(wheel):
    """The documented upgrade builds in the same checkout."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert FORMER not in names
    assert "solisync/storage/players/accounts.py" in names


def test_installation_works_away_from_the_checkout(installation, tmp_path):
    """The commands run, twistd finds the plugin, and the service finds the migrations and the scripts."""
    python = installation / "bin" / "python"
    modules = "import solisync.postgres.migrate as migrate, solisync.web.page_build as page_build"
    code = f"{modules}; print(page_build.CLIENT_FILES, len(migrate.load_migrations()))"
    found = run(python, "-c", code, cwd=tmp_path)
    assert found.err == []
    file, _, count = found.out[0].rpartition(" ")
    assert Path(file).is_relative_to(installation)
    assert int(count) == len(list((ROOT / "migrations").glob("*.sql")))
    assert run(python, "-m", "solisync", "--version", cwd=tmp_path).out == [f"solisync {__version__}"]
    twistd = "from twisted.scripts.twistd import run; run()"
    shown = run(python, "-c", twistd, "solisync", "--help", cwd=tmp_path)
    assert shown.status == 0
    assert "--data-dir=" in " ".join(shown.out)


def test_installation_has_the_documented_scripts(wheel):
    (entry_points,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("entry_points.txt"))
    text = zipfile.ZipFile(wheel).read(entry_points).decode()
    assert "solisync = solisync.commands.start:main" in text
    assert "solisync-reset-password = solisync.commands.start:reset_password" in text


def dependencies(name, extras=frozenset(), seen=None):
    """Return every package that is installed with this one, by canonical names."""
    seen = {} if seen is None else seen
    for wanted in map(Requirement, metadata.requires(name) or ()):
        given = [{"extra": extra} for extra in extras or {""}]
        canonical = canonicalize_name(wanted.name)
        if wanted.marker is not None and not any(map(wanted.marker.evaluate, given)):
            continue
        if canonical not in seen or not wanted.extras <= seen[canonical]:
            seen[canonical] = wanted.extras | seen.get(canonical, set())
            dependencies(wanted.name, wanted.extras, seen)
    return set(seen)


def test_lock_pins_what_an_installation_needs():
    """requirements.lock has every package of an installation, at a version that setup.py allows, with hashes."""
    text = (ROOT / "requirements.lock").read_text("utf-8")
    blocks = re.split(r"^(?=[a-z])", text, flags=re.M)[1:]
    pinned = dict(re.match(r"([a-z0-9-]+)==(\S+) ", block).groups() for block in blocks)
    assert set(pinned) == dependencies("solisync")
    assert all("--hash=sha256:" in block for block in blocks)
    for wanted in map(Requirement, metadata.requires("solisync")):
        if wanted.marker is None:
            assert pinned[canonicalize_name(wanted.name)] in wanted.specifier, wanted


def test_licence_of_each_dependency_is_documented():
    """docs/licences.md has a row for each package that an installation brings; `make release-check` reads them."""
    table = (ROOT / "docs" / "licences.md").read_text("utf-8")
    assert {canonicalize_name(name) for name in re.findall(r"^\| ([a-z0-9.-]+) \| ", table, re.M)} == dependencies(
        "solisync"
    )


@pytest.mark.long
@pytest.mark.needs("git")
def test_source_distribution_has_every_file_of_the_repository(tmp_path):
    """Its README names the Makefile and CONTRIBUTING.md, which need the tests and their tools."""
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    tracked = subprocess.check_output(["git", "ls-files"], cwd=source, text=True).splitlines()
    build = BUILD.replace("build_wheel", "build_sdist")
    subprocess.run([sys.executable, "-c", build, tmp_path], cwd=source, check=True, env=clean_environment())
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert set(tracked) - packed <= {".gitignore", ".gitattributes"}

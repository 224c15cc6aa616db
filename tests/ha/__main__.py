"""`make test-ha`: the tests of this directory, when the programs that they need are installed."""

import shutil
import sys

import pytest

from tests.ha.cluster import binaries
from tests.ha.test_patroni import PROGRAMS

if __name__ == "__main__":
    missing = [name for name in PROGRAMS if shutil.which(name) is None] + ["postgresql"] * (binaries() is None)
    if missing:
        packages = "patroni etcd-server postgresql haproxy pgbouncer"
        print(f"make test-ha needs {', '.join(missing)}: apt-get install {packages}", file=sys.stderr)
        sys.exit(2)
    sys.exit(pytest.main(["tests/ha", "--fire", *sys.argv[1:]]))

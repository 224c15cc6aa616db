"""The typed client, which game tools import too."""

import subprocess
import sys


def test_the_client_loads_no_database_module():
    """`import solisync.client` needs neither a driver nor the service's own database code."""
    program = "import solisync.client, sys; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    unwanted = ("txpostgres", "psycopg2", "solisync.postgres", "solisync.storage", "solisync.web")
    assert [name for name in loaded if name.startswith(unwanted)] == []
    assert "solisync.client" in loaded

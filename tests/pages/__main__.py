"""Print in one line what the tests of the pages lack on this machine, and exit with status 2 if they lack anything."""

import importlib.util
import shutil
import sys

missing = [module for module in ("playwright", "axe_playwright_python") if importlib.util.find_spec(module) is None]
missing += [program for program in ("chromium",) if shutil.which(program) is None]
if missing:
    sys.exit(print(f"make test-pages needs what is not installed here: {', '.join(missing)}", file=sys.stderr) or 2)
for program in ("java", "npm"):
    if shutil.which(program) is None:
        print(f"make test-pages: {program} is not installed, so the markup of the pages is not validated")

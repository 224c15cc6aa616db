"""Print in one line what `make test-clients` lacks on this machine, and exit with status 2 if it lacks anything."""

import importlib.util
import os
import shutil
import sys

missing = [program for program in ("node", "npm", "chromium", "cargo") if shutil.which(program) is None]
missing += [module for module in ("playwright",) if importlib.util.find_spec(module) is None]
if missing:
    sys.exit(print(f"make test-clients needs what is not installed here: {', '.join(missing)}", file=sys.stderr) or 2)
if shutil.which("go") is None:
    print("make test-clients: go is not installed, so no client in Go is generated")
if os.environ.get("GENERATORS") == "all":
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            print(f"make test-clients: {program} is not installed, so the generators that need it are left out")
if shutil.which("wasm-bindgen") is None:
    print("make test-clients: wasm-bindgen is not installed, so the crate is not tried in a browser")

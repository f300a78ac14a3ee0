# One door for people and for CI. Needs Python 3.11 or newer and make; everything else is installed
# into .venv from wheels. Each install leaves a stamp, so the second run touches no network.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
BIND ?= 127.0.0.1:8080
DATA ?= ./data
WORKERS ?= 2
TESTS ?= tests

.DEFAULT_GOAL := help
.PHONY: help setup run test check fix bench scenarios soak openapi proto sdk peers reference clean

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)$$/  make \1|\2/' | column -t -s '|' 2>/dev/null \
	  || grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "corvo needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The server alone: what `make run` needs.
$(VENV)/.stamp-run: requirements.lock pyproject.toml sdks/python/pyproject.toml | $(BIN)/python
	$(PIP) install --only-binary :all: -r requirements.lock
	$(PIP) install --no-build-isolation --no-deps -e sdks/python -e .
	@touch $@

# The server and the tools of `make test`.
$(VENV)/.stamp-dev: requirements-dev.lock requirements-otel.lock $(VENV)/.stamp-run
	$(PIP) install --only-binary :all: -r requirements-otel.lock -r requirements-dev.lock
	@touch $@

setup: $(VENV)/.stamp-dev ## install the server and all tools into .venv

run: $(VENV)/.stamp-run ## start a server on 127.0.0.1:8080 with its data in ./data
	exec $(BIN)/corvo server --bind $(BIND) --data-dir $(DATA)

test: setup check ## check, then run the whole suite (TESTS=path for a part, WORKERS=n)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

check: setup ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright --level error
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

fix: setup ## format and repair what can be repaired
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: setup ## measure, with the machine's description; prints ratios within one run
	$(BIN)/python -m bench $(ARGS)

peers: ## install the systems `make bench ARGS=peers` compares with, into .venv-peers
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip --disable-pip-version-check --quiet install --only-binary :all: -r bench/peers/requirements.txt

scenarios: setup ## replay the text conversations (ARGS=--rewrite to accept what is said now)
	$(BIN)/python -m pytest tests/scenarios $(ARGS)

soak: setup ## let the judges of machine and view search for as long as they like
	CORVO_PROFILE=long $(BIN)/python -m pytest -n $(WORKERS) --timeout 0 tests/model tests/integration/view \
	  tests/crash/test_view_kill.py $(ARGS)

openapi: setup ## rewrite spec/openapi.json from the wire types and the catalog of routes
	$(BIN)/python -m corvo.api.openapi > spec/openapi.json

proto: setup ## rewrite the messages of gRPC from proto/corvo/v1/worker.proto
	@mkdir -p build/proto
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=build/proto --pyi_out=build/proto corvo/v1/worker.proto
	cp build/proto/corvo/v1/worker_pb2.py build/proto/corvo/v1/worker_pb2.pyi src/corvo/api/stream/generated/

reference: setup ## rewrite the generated parts of docs/reference/cli.md from the commands
	$(BIN)/python -m corvo.cli.reference docs/reference/cli.md

sdk: setup ## rewrite the methods of AsyncClient from those of Client
	$(BIN)/python -m corvo_sdk.shell.generate
	$(BIN)/ruff format --quiet sdks/python/src/corvo_sdk/shell/awaiting

clean: ## remove the environment, caches and build results; ./data stays
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache .mypy_cache
	find src sdks tests -name __pycache__ -type d -prune -exec rm -rf {} +

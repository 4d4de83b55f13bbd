# Two commands do all the set-up on a fresh Debian or Ubuntu machine: make demo, make test.
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=

.PHONY: help setup setup-dev demo test fast lint live engine bench compiled reference clean

help:  ## says what the targets do
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.run: requirements/run.txt pyproject.toml
	@bash compose/setup.sh $(VENV) requirements/run.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml
	@bash compose/setup.sh $(VENV) requirements/dev.txt
	@touch $@ $(VENV)/.run

setup: $(VENV)/.run  ## the tool in an environment of its own, and the servers it needs

setup-dev: $(VENV)/.dev  ## the same with what tests need

demo: setup  ## three runs on a real Redis: one holds, one is violated, one is saved by fencing
	@$(BIN)/lockhavoc run scenarios/demo/*.toml

test: setup-dev lint  ## every test that this machine can run; says why others are skipped
	@$(BIN)/python -m pytest -n 2 --dist loadfile $(PYTEST_ARGS)

fast: setup-dev  ## unit tests only: no server, some seconds
	@$(BIN)/python -m pytest -n 2 -m "not live and not slow" $(PYTEST_ARGS)

live: setup-dev  ## live tests only
	@$(BIN)/python -m pytest -m live $(PYTEST_ARGS)

lint: setup-dev  ## ruff and mypy
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

engine:  ## Docker Engine and Compose on a Debian/Ubuntu machine that has none (root)
	@bash compose/engine.sh

bench: setup-dev  ## the tables of docs/benchmarks.md
	@for file in benchmarks/*.py; do echo "## $$file"; $(BIN)/python $$file || exit 1; done

compiled: setup-dev  ## a wheel in dist/ whose general checker is compiled (needs a C compiler)
	@$(BIN)/python benchmarks/compiled.py dist

reference: setup-dev  ## writes docs/reference from the registries
	@$(BIN)/python -m harness.reference docs/reference

clean:  ## removes the environment and caches, not the store
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

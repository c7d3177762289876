# Every target does its own set-up: a bare machine needs Python >= 3.11 (with venv) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
PYTEST := $(BIN)/python -m pytest -n 2 -q
export OPENBLAS_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-arrays test-lowest test-slow native lint types format bench evidence docs clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

demo: $(VENV)/.demo  ## minimise 1000 variables, compare the methods, draw demo.png
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev  ## the tests, under 10 minutes on 2 cores
	$(PYTEST) -m "not slow and not arrays"

test-arrays: $(VENV)/.arrays  ## the tests that need PyTorch and JAX
	$(PYTEST) -m "arrays and not slow" tests

test-lowest: $(LOWEST)/.dev  ## the tests with the lowest NumPy we allow
	$(LOWEST)/bin/python -m pytest -n 2 -q -m "not slow and not arrays" tests

test-slow: $(VENV)/.dev  ## published budgets at d = 200 and more (an hour)
	$(PYTEST) -m slow tests

native:  ## build the extension into src/, for the Python named by PYTHON= that has nanobind
	cmake -S . -B build/native -DPython_EXECUTABLE=$$(command -v $(PYTHON))
	cmake --build build/native
	cmake --install build/native --prefix src

lint: $(VENV)/.dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev  ## mypy, strict
	$(BIN)/mypy

bench: $(VENV)/.dev  ## time per generation beside the peers
	$(BIN)/python benchmarks/speed.py

evidence: $(VENV)/.dev  ## the tables of docs/safe-variant.md and docs/evaluations.md (hours)
	$(BIN)/python benchmarks/evidence.py

docs: $(VENV)/.docs  ## the documentation, in docs/_build/html
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:  ## remove everything that was installed or built here
	rm -rf $(VENV) $(LOWEST) build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis demo.png

define create_venv
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found: install Python >= 3.11, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: fmnes needs Python >= 3.11, $(PYTHON) is $$($(PYTHON) --version)" >&2; exit 1; }
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1) || { rm -rf $(1); echo "make: cannot create a virtual environment: install Python's venv module (Debian: python3-venv)" >&2; exit 1; }
endef

$(VENV)/.demo: pyproject.toml
	$(call create_venv,$(VENV))
	$(BIN)/python -m pip install -q -e '.[plot,progress]'
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(call create_venv,$(VENV))
	$(BIN)/python -m pip install -q -e '.[dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.arrays: $(VENV)/.dev
	$(BIN)/python -m pip install -q torch==2.13.0 'jax>=0.4.32'
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install -q -e '.[docs]'
	@touch $@

$(LOWEST)/.dev: pyproject.toml
	$(call create_venv,$(LOWEST))
	$(LOWEST)/bin/python -m pip install -q -e '.[dev]' 'numpy==2.0.*'
	@touch $@

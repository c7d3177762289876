# Every target does its own set-up: a bare machine needs Python >= 3.11 (with venv) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
SANITIZE := .venv-sanitize
NATIVE := CMakeLists.txt $(wildcard native/*)
PYTEST := $(BIN)/python -m pytest -n 2 -q
QUICK := -m "not slow and not arrays and not build and not engines and not examples and not browser"
export OPENBLAS_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo dist paper test test-agnostic test-arrays test-browser test-build test-engines \
	test-examples test-sanitize test-lowest test-neon test-slow native lint types format bench evidence docs clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

demo: $(VENV)/.demo  ## minimise 1000 variables, compare the methods, draw demo.png
	$(BIN)/python examples/demo.py

paper: $(VENV)/.paper  ## the paper's experiments at d = 80, two trials each, and their page (3 minutes)
	$(BIN)/fmnes paper run
	$(BIN)/fmnes paper report

test: $(VENV)/.dev  ## the tests, under 10 minutes on 2 cores
	$(PYTEST) $(QUICK)

test-agnostic: $(VENV)/.dev  ## the tests with the array-agnostic kernels
	FMNES_KERNELS=agnostic $(PYTEST) $(QUICK)

test-arrays: $(VENV)/.arrays  ## the tests that need PyTorch and JAX
	$(PYTEST) -m "arrays and not slow" tests

test-engines: $(VENV)/.engines  ## searches and workers that are killed, on every engine there is
	$(PYTEST) -m engines tests

test-examples: $(VENV)/.examples  ## the scripts of examples/ with small budgets, and their pages
	$(PYTEST) -m examples tests

test-browser: $(VENV)/.browser  ## the pages of `fmnes watch` in headless Chromium
	$(PYTEST) -m browser tests

test-build: $(VENV)/.dev  ## build the package with a C++ compiler and without
	$(PYTEST) -m build tests/native

# Python itself is not compiled for the sanitizers, so that their library has to be loaded before
# it, and with it the C++ one whose exceptions it watches; Python leaks on purpose when it ends.
test-sanitize: $(SANITIZE)/.dev  ## the compiled kernels under AddressSanitizer and UBSan
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 FMNES_KERNELS=native \
	$(SANITIZE)/bin/python -m pytest -n 2 -q $(QUICK) tests/native

# Debian: apt-get install g++-aarch64-linux-gnu qemu-user
CHECK_BITS := -std=c++20 -O2 -ffp-contract=off -Inative tests/native/check_bits.cpp \
	$(filter-out %/module.cpp %/dispatch.cpp $(wildcard native/bind_*.cpp),$(wildcard native/*.cpp))
test-neon:  ## the kernels of aarch64, emulated, give the bits of this machine (a cross compiler, qemu)
	mkdir -p build
	$(CXX) -DFMNES_LEVEL=baseline $(CHECK_BITS) -pthread -o build/check_bits
	aarch64-linux-gnu-g++ -DFMNES_LEVEL=neon $(CHECK_BITS) -pthread -static -o build/check_bits_neon
	test "$$(build/check_bits)" = "$$(qemu-aarch64 build/check_bits_neon)" && echo the same bits

dist: $(VENV)/.dist  ## the source archive and the wheel, in dist/

test-lowest: $(LOWEST)/.dev  ## the tests on the built wheel, with the lowest NumPy we allow
	$(LOWEST)/bin/python -m pytest -n 2 -q $(QUICK) tests

test-slow: $(VENV)/.dev  ## published budgets at d = 200 and more (an hour)
	$(PYTEST) -m slow tests

native:  ## build the extension into src/, for the Python named by PYTHON= that has nanobind
	cmake -S . -B build/native -DPython_EXECUTABLE=$$(command -v $(PYTHON))
	cmake --build build/native --parallel 2
	cmake --install build/native --prefix src

lint: $(VENV)/.dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev  ## mypy, strict
	$(BIN)/mypy

bench: $(VENV)/.speed  ## time and memory of a generation beside the peers (half an hour)
	$(BIN)/python benchmarks/speed.py

evidence: $(VENV)/.dev  ## the tables of docs/safe-variant.md (hours)
	$(BIN)/python benchmarks/evidence.py

docs: $(VENV)/.docs  ## the documentation, in docs/_build/html
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:  ## remove everything that was installed or built here
	rm -rf $(VENV) $(LOWEST) $(SANITIZE) build dist docs/_build .mypy_cache .ruff_cache .pytest_cache \
		.hypothesis demo.png src/fmnes/kernels/_native.*.so

define create_venv
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found: install Python >= 3.11, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: fmnes needs Python >= 3.11, $(PYTHON) is $$($(PYTHON) --version)" >&2; exit 1; }
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1) || { rm -rf $(1); echo "make: cannot create a virtual environment: install Python's venv module (Debian: python3-venv)" >&2; exit 1; }
endef

# Programs that are no Python packages; the tests that need them say so where they are missing.
define debian
	@command -v $(1) >/dev/null || { test "$$(id -u)" = 0 && apt-get -qq update \
		&& DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $(2); } >/dev/null 2>&1 \
		|| echo "make: $(1) not found and not installed; Debian: apt-get install $(2)"
endef

$(VENV)/.demo: pyproject.toml $(NATIVE)
	$(call create_venv,$(VENV))
	$(BIN)/python -m pip install -q -e '.[plot,progress]'
	@$(BIN)/python -c 'import fmnes; fmnes.show_config()'
	@touch $@

$(VENV)/.paper: pyproject.toml $(NATIVE)
	$(call create_venv,$(VENV))
	$(BIN)/python -m pip install -q -e '.[paper]'
	@touch $@ $(VENV)/.demo

$(VENV)/.dev: pyproject.toml $(NATIVE)
	$(call create_venv,$(VENV))
	$(BIN)/python -m pip install -q -e '.[dev]'
	@$(BIN)/python -c 'import fmnes; fmnes.show_config()'
	@touch $@ $(VENV)/.demo $(VENV)/.paper

$(VENV)/.arrays: $(VENV)/.dev
	$(BIN)/python -m pip install -q torch==2.13.0 'jax>=0.4.32'
	@touch $@

$(VENV)/.engines: $(VENV)/.dev
	$(BIN)/python -m pip install -q -e '.[engines]'
	$(call debian,sbatch,slurm-wlm)
	@touch $@

$(VENV)/.examples: $(VENV)/.arrays
	$(BIN)/python -m pip install -q -e '.[examples]'
	@touch $@

$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -m pip install -q -e '.[browser]'
	$(call debian,chromedriver,chromium chromium-driver)
	@touch $@

$(VENV)/.speed: $(VENV)/.dev
	$(BIN)/python -m pip install -q -e '.[speed]'
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install -q -e '.[docs]'
	@touch $@

$(LOWEST)/.dev: $(VENV)/.dist
	$(call create_venv,$(LOWEST))
	$(LOWEST)/bin/python -m pip install -q --force-reinstall "$$(echo dist/fmnes-*.whl)[dev]" 'numpy==2.0.*'
	@touch $@

# build makes the wheel from the source archive, so that both are tried.
$(VENV)/.dist: pyproject.toml $(NATIVE) $(shell git ls-files src 2>/dev/null)
	$(call create_venv,$(VENV))
	$(BIN)/python -m pip install -q build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	@touch $@

# With -g1 (line numbers) and -O1 the compiler needs a minute for each level; with more, five.
# Four checks of UBSan are left to AddressSanitizer: on eight lanes in little arrays they make the
# compiler take four times as long. With another type of build nanobind strips the symbols.
SANITIZE_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-sanitize=null,alignment,object-size,bounds
$(SANITIZE)/.dev: pyproject.toml $(NATIVE)
	$(call create_venv,$(SANITIZE))
	CXXFLAGS="$(SANITIZE_FLAGS)" LDFLAGS="$(SANITIZE_FLAGS)" \
	$(SANITIZE)/bin/python -m pip install -q -e . \
		--config-settings=cmake.build-type=RelWithDebInfo \
		--config-settings=cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO='-O1 -g1' \
		array-api-strict hypothesis mpmath pytest pytest-xdist scipy
	@touch $@

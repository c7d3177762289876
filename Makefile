# Every target installs what it needs. A bare machine needs make and Python >= 3.11 with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
SANITIZE := .venv-sanitize
NATIVE := CMakeLists.txt $(wildcard native/*)
# worksteal: a process that has finished its tests takes over some of the other's.
OPTIONS := -n 2 --dist worksteal -q
PYTEST := $(BIN)/python -m pytest $(OPTIONS)
export OPENBLAS_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start hundreds of interpreters. Without the compiled files of the first, each of them
# compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo dist paper test test-agnostic test-arrays test-browser test-build test-gpu test-pools \
	test-examples test-experiments test-explore test-sanitize test-lowest test-neon test-slow native lint types format \
	bench bench-gpu evidence leaderboard docs clean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

demo: $(VENV)/.demo  ## minimize 1000 variables, compare the methods, draw demo.png
	$(BIN)/python examples/demo.py

paper: $(VENV)/.paper  ## run the paper's experiments at d = 80 with two trials each, and make their page (3 minutes)
	$(BIN)/fmnes paper run
	$(BIN)/fmnes paper report

test: $(VENV)/.dev  ## run the tests (4 minutes on 2 cores, the first time 6)
	$(PYTEST)

test-experiments: $(VENV)/.dev  ## run, kill and resume the paper's experiments, COCO and the leaderboard
	$(PYTEST) -m experiments tests

# Only these tests can depend on which kernels compute the numbers. The others are about processes,
# files, the command line, pictures and pages; they call the same functions, and run in `make test`.
NUMERIC := $(addprefix tests/,backends checkpoints/test_resume.py checkpoints/test_formats.py cluster \
	contract draws equations golden invariance published shell test_imports.py test_problems.py) src
test-agnostic: $(VENV)/.dev  ## run the numerical tests without the compiled kernels (2 minutes)
	FMNES_KERNELS=agnostic $(PYTEST) $(NUMERIC)

test-arrays: $(VENV)/.arrays  ## run the tests that need PyTorch and JAX
	$(PYTEST) -m "arrays and not slow" tests

# docs/gpu.md has the command for a machine where nothing can be installed.
GPU_TESTS := tests/gpu $(wildcard tests/backends/test_jax_*.py) tests/draws/test_array_draws.py \
	tests/integrations/test_torch.py
test-gpu: $(VENV)/.gpu  ## run the tests of PyTorch, Triton and JAX on a GPU; says what it found
	$(BIN)/python -m pytest -q -m "arrays and not slow" $(GPU_TESTS)

test-pools: $(VENV)/.pools  ## start, kill and resume searches on Dask, Ray, MPI and SLURM
	$(PYTEST) -m pools tests

test-examples: $(VENV)/.examples  ## run the scripts of examples/ with small budgets, and evosax beside ours
	$(PYTEST) -m examples tests

test-browser: $(VENV)/.browser  ## open the documentation and the pages of `fmnes watch` in headless Chromium
	$(PYTEST) -m browser tests/browser

# loadgroup: the tests of one compiled wheel run in one process, so that it is compiled once.
test-build: $(VENV)/.dev  ## build the package with a C++ compiler and without
	$(PYTEST) -m build --dist loadgroup tests/native/test_build.py

test-explore: $(VENV)/.dev  ## run the property tests on 20 times as many examples, new ones each time (10 minutes)
	$(PYTEST) -m hypothesis --hypothesis-profile=explore tests

# Python itself is not compiled for the sanitizers, so their library has to be loaded before it, and
# the C++ library too, whose exceptions they watch. Python leaks on purpose when it ends. Random
# examples only repeat what the fixed shapes reach, so there are few.
test-sanitize: $(SANITIZE)/.dev  ## run the compiled kernels under AddressSanitizer and UBSan
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 FMNES_KERNELS=native \
	$(SANITIZE)/bin/python -m pytest $(OPTIONS) --hypothesis-profile=few tests/native

# Debian: apt-get install g++-aarch64-linux-gnu qemu-user
CHECK_BITS := -std=c++20 -O2 -ffp-contract=off -Inative tests/native/check_bits.cpp \
	$(filter-out %/module.cpp %/dispatch.cpp $(wildcard native/bind_*.cpp),$(wildcard native/*.cpp))
test-neon:  ## compare the kernels of emulated ARM bit by bit with this machine's (needs a cross compiler and qemu)
	mkdir -p build
	$(CXX) -DFMNES_LEVEL=baseline $(CHECK_BITS) -pthread -o build/check_bits
	aarch64-linux-gnu-g++ -DFMNES_LEVEL=neon $(CHECK_BITS) -pthread -static -o build/check_bits_neon
	test "$$(build/check_bits)" = "$$(qemu-aarch64 build/check_bits_neon)" && echo "bits are equal"

dist: $(VENV)/.dist  ## build the source archive and the wheel, in dist/

# What can differ here: which files the wheel holds, and functions that NumPy 2.0 does not have yet.
test-lowest: $(LOWEST)/.dev  ## test the built wheel with the lowest supported NumPy (2 minutes)
	$(LOWEST)/bin/python -m pytest $(OPTIONS) $(addprefix tests/,checkpoints/test_formats.py \
		checkpoints/test_resume.py cli contract draws golden pictures shell test_imports.py test_problems.py)

test-slow: $(VENV)/.dev  ## run the published budgets at d = 200 and more (an hour)
	$(PYTEST) -m slow tests

native:  ## build the extension into src/, for the Python named by PYTHON=, which has nanobind
	cmake -S . -B build/native -DPython_EXECUTABLE=$$(command -v $(PYTHON))
	cmake --build build/native --parallel 2
	cmake --install build/native --prefix src

lint: $(VENV)/.dev  ## check rules and format with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev  ## let ruff correct rules and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev  ## check the types with mypy
	$(BIN)/mypy

bench: $(VENV)/.speed  ## measure time and memory of a generation, and those of other packages (half an hour)
	$(BIN)/python benchmarks/speed.py

bench-gpu: $(VENV)/.gpu  ## measure a generation on one GPU, beside other packages (5 minutes)
	$(BIN)/python benchmarks/gpu.py --out benchmarks/results/gpu.json

evidence: $(VENV)/.dev  ## run the experiments of docs/safe-variant.md and make its tables (hours)
	$(BIN)/python benchmarks/evidence.py

leaderboard: $(VENV)/.leaderboard  ## make docs/leaderboard.md and leaderboard.html from the stored trials
	$(BIN)/python benchmarks/leaderboard report

docs: $(VENV)/.docs  ## build the documentation, in docs/_build/html
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

# Programs that are not Python packages. If one is missing, the tests that need it are skipped.
define debian
	@command -v $(1) >/dev/null || { test "$$(id -u)" = 0 && apt-get -qq update \
		&& DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $(2); } >/dev/null 2>&1 \
		|| echo "make: $(1) not found and not installed; Debian: apt-get install $(2)"
endef

# fmnes is compiled once. Its extras are installed on top of it: with `pip install -e '.[extra]'`,
# pip would compile it again for each of them.
$(VENV)/.fmnes: pyproject.toml $(NATIVE)
	$(call create_venv,$(VENV))
	$(BIN)/python -m pip install -q -e .
	@$(BIN)/python -c 'import fmnes; fmnes.show_config()'
	@touch $@

$(VENV)/.demo: $(VENV)/.fmnes
	$(BIN)/python -m pip install -q 'fmnes[plot,progress]'
	@touch $@

$(VENV)/.paper $(VENV)/.dev: $(VENV)/.%: $(VENV)/.fmnes
	$(BIN)/python -m pip install -q 'fmnes[$*]'
	@touch $@

$(VENV)/.arrays: $(VENV)/.dev
	$(BIN)/python -m pip install -q torch==2.13.0 'jax>=0.8'
	test "$$(uname)" != Linux || $(BIN)/python -m pip install -q 'triton>=3.7'
	@touch $@

$(VENV)/.gpu: $(VENV)/.dev
	$(BIN)/python -m pip install -q 'fmnes[gpu]'
	@touch $@

$(VENV)/.pools: $(VENV)/.dev
	$(BIN)/python -m pip install -q 'fmnes[pools]'
	$(call debian,sbatch,slurm-wlm)
	@touch $@

$(VENV)/.examples: $(VENV)/.arrays
	$(BIN)/python -m pip install -q 'fmnes[examples]'
	@touch $@

$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -m pip install -q 'fmnes[browser]'
	$(call debian,chromedriver,chromium chromium-driver)
	@touch $@

$(VENV)/.speed: $(VENV)/.dev
	$(BIN)/python -m pip install -q 'fmnes[speed]'
	@touch $@

$(VENV)/.leaderboard: $(VENV)/.dev
	$(BIN)/python -m pip install -q 'fmnes[leaderboard]'
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install -q 'fmnes[docs]'
	@touch $@

$(LOWEST)/.dev: $(VENV)/.dist
	$(call create_venv,$(LOWEST))
	$(LOWEST)/bin/python -m pip install -q --force-reinstall "$$(echo dist/fmnes-*.whl)[dev]" 'numpy==2.0.*'
	@touch $@

# build makes the wheel from the source archive, so both are tried.
$(VENV)/.dist: pyproject.toml $(NATIVE) $(shell git ls-files src 2>/dev/null)
	$(call create_venv,$(VENV))
	$(BIN)/python -m pip install -q build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	@touch $@

# With -g1 (line numbers) and -O1 the compiler needs a minute for each level; with more, five.
# Four checks of UBSan are left to AddressSanitizer, because with them the compiler takes four times
# as long. With another type of build nanobind strips the symbols.
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

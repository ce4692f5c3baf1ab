# Two commands: `make demo` runs the main job, `make test` shows that everything works. Both set up what they need: beyond git, make,
# g++ (12 or newer), python3 (3.11 or newer) and python3-venv everything comes from PyPI into .venv. No GPU and no CUDA toolkit is needed.
#
#   make build      build/kw (the command line) and build/python (the package, importable in .venv)
#   make test-full  the same as test, with the long versions of the tests
#   make lint       formatting, clang-tidy, Python syntax          make format   formats the C++ and CUDA sources in place
#   make gpu-test   on a machine with a GPU and an existing build  make gpu-bench  measures there
#   make gpu-access  there: the emulator's access report against Nsight Compute's counters (OUT=file.json; under a minute)
#   make setup, make clean
#
# Variables: BUILD (folder, default build), PYTHON (default the one of .venv), JOBS (default: the cores), CXX.
.DEFAULT_GOAL := build
.PHONY: setup build test test-full demo lint format gpu-test gpu-bench gpu-access clean check-tools
BUILD ?= build
JOBS ?= $(shell nproc)
PYTHON ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)
ifeq ($(origin CXX),default)
CXX := g++
endif

# The pinned cmake, ninja, clang-format and clang-tidy come first; a system's own serve where there is no .venv.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# The package of this very tree, also where several trees share one .venv.
export PYTHONPATH := $(if $(filter /%,$(BUILD)),,$(CURDIR)/)$(BUILD)/python:$(PYTHONPATH)
export CXX BUILD

check-tools:
	@sh scripts/setup.sh check

setup: check-tools
	@sh scripts/setup.sh

build: setup
	@test -f "$(BUILD)/build.ninja" || cmake -S . -B "$(BUILD)" -G Ninja --log-level=WARNING
	@cmake --build "$(BUILD)" -j $(JOBS)
	@sh scripts/link_package.sh "$(BUILD)"

test: build
	@.venv/bin/python scripts/run_tests.py --build "$(BUILD)" --jobs $(JOBS)

test-full: build
	@.venv/bin/python scripts/run_tests.py --build "$(BUILD)" --jobs $(JOBS) --full

# Only what the demo needs: the tests' programs are two thirds of the build.
demo: setup
	@test -f "$(BUILD)/build.ninja" || cmake -S . -B "$(BUILD)" -G Ninja --log-level=WARNING
	@cmake --build "$(BUILD)" -j $(JOBS) --target kw python_package
	@sh scripts/link_package.sh "$(BUILD)"
	@.venv/bin/python examples/train_llama.py

lint: setup
	@test -f "$(BUILD)/build.ninja" || cmake -S . -B "$(BUILD)" -G Ninja --log-level=WARNING
	@.venv/bin/python scripts/lint.py --build "$(BUILD)" --jobs $(JOBS)

format: setup
	@.venv/bin/python scripts/lint.py --format

# These two set nothing up: the GPU machine may have no network. They need a build folder and a Python with torch (PYTHON=...).
gpu-test:
	@$(PYTHON) scripts/run_tests.py --build "$(BUILD)" --gpu

gpu-bench:
	@$(PYTHON) scripts/gpu_bench.py --build "$(BUILD)"

OUT ?= $(BUILD)/access.json
gpu-access:
	@$(PYTHON) benchmarks/access_ncu.py --build "$(BUILD)" --json "$(OUT)"

clean:
	rm -rf "$(BUILD)" "$(BUILD)-asan"

# The front door. Every target sets up what it needs; `make` alone lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
# Recipes call Ninja and pytest, which share out the cores themselves.
.NOTPARALLEL:

JOBS ?= $(shell nproc)
PYTHON := .venv/bin/python
# Pythons that have PyTorch and PaddlePaddle, for test-torch and test-paddle alone.
OAR_TORCH ?= $(CURDIR)/build/bench/torch/bin/python
# For fuzz alone.
export FUZZ_ARGS ?= --count 50000
OAR_PADDLE ?= $(CURDIR)/build/bench/paddle/bin/python
# OAR_WERROR=1 turns compiler warnings into errors, as the automatic runs do.
CONFIGURE_FLAGS = -DOAR_WERROR=$(if $(filter 1 ON on,$(OAR_WERROR)),ON,OFF) -DOAR_LEAN=$(LEAN)
LEAN = OFF

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what a build needs (every target below does this first)
	@tools/setup.sh build

.PHONY: build
build: setup ## build the library, the command and the Python package in build/
	@$(call compile,release)

# Neither tests nor stubs, loops for this machine alone, and no kernels of rare families: what the example runs and no more. A
# folder that holds a whole build stays one.
.PHONY: quickstart
quickstart: LEAN = $(if $(shell grep -s -e -DOAR_LEAN=OFF build/.configured),OFF,ON)
quickstart: ## train on handwritten digits, then predict from C++
	@tools/setup.sh run
	@$(call compile,release,oar_python oar_stage)
	@examples/quickstart/run.sh

.PHONY: quickstart-cpp
quickstart-cpp: LEAN = $(if $(shell grep -s -e -DOAR_LEAN=OFF build/.configured),OFF,ON)
quickstart-cpp: ## the same training in C++ alone, with the same losses
	@tools/setup.sh run
	@$(call compile,release,oar_python oar_stage)
	@cmake -S examples/quickstart -B build/quickstart/cpp "-DOar_DIR=$(CURDIR)/build" >/dev/null
	@cmake --build build/quickstart/cpp --target train
	@build/quickstart/cpp/train python/oar/datasets/digits.npz --out build/quickstart/cpp

.PHONY: test
test: build ## build, then run the C++ and the Python tests
	@tools/run_tests.sh release cpp package python

.PHONY: test-full
test-full: build ## the same in every mode and with AVX2 alone, the sanitizers over every C++ test, 64-bit ARM and WebAssembly
	@OAR_TEST_MODE=full tools/run_tests.sh release cpp package python avx2
	@$(MAKE) --no-print-directory test-asan
	@$(call compile,tsan,oar_tests)
	@tools/run_tests.sh tsan cpp
	@$(MAKE) --no-print-directory test-deploy test-deploy-all test-aarch64 test-wasm

.PHONY: test-asan
test-asan: setup ## C++ tests under the address and undefined-behaviour sanitizers
	@$(call compile,asan,oar_tests)
	@tools/run_tests.sh asan cpp

.PHONY: test-tsan
test-tsan: setup ## the C++ tests of threads and asynchronous devices under the thread sanitizer
	@$(call compile,tsan,oar_tests)
	@tools/run_tests.sh tsan threads

# What the quickstart trains and saves; the runtime library must read the same digits.
build/quickstart/digits.pdmodel:
	@$(MAKE) --no-print-directory quickstart

.PHONY: test-deploy
test-deploy: build/quickstart/digits.pdmodel ## the runtime library: its symbols, its size, the digits of the quickstart, also in a root folder with nothing else
	@tools/setup.sh run
	@$(call compile,deploy)
	@tools/run_tests.sh deploy deploy

.PHONY: test-deploy-all
test-deploy-all: build/quickstart/digits.pdmodel ## the same with the kernels of all families and without oneDNN
	@tools/setup.sh run
	@$(call compile,deploy-all)
	@tools/run_tests.sh deploy-all deploy

.PHONY: test-aarch64
test-aarch64: build/quickstart/digits.pdmodel ## the same for 64-bit ARM, under qemu
	@tools/setup.sh aarch64
	@$(call compile,aarch64)
	@tools/run_tests.sh aarch64 deploy

.PHONY: test-wasm
test-wasm: build/quickstart/digits.pdmodel ## the same for WebAssembly, in Node
	@tools/setup.sh wasm
	@$(call compile,wasm)
	@tools/run_tests.sh wasm deploy

.PHONY: fuzz
fuzz: setup ## random calls and programs under the sanitizers (FUZZ_ARGS="--count 200000 --seed 2", "--help")
	@$(call compile,asan,oar_fuzz_calls oar_fuzz_executor)
	@tools/run_tests.sh asan fuzz

.PHONY: fuzz-short
fuzz-short: ## the same for 40 seconds each
	@$(MAKE) --no-print-directory fuzz FUZZ_ARGS="--count 1000000 --seconds 40"

.PHONY: test-torch
test-torch: build ## values and gradients of every op, and converted scripts, against PyTorch (after `make bench-peers`)
	@OAR_TORCH="$(OAR_TORCH)" $(PYTHON) -m pytest -q -rs tests/python/peers/test_torch.py tests/python/peers/test_from_torch_scripts.py

.PHONY: test-paddle
test-paddle: build ## values, gradients and dtypes of every op, networks, files and scripts against PaddlePaddle (after `make bench-peers`)
	@OAR_PADDLE="$(OAR_PADDLE)" $(PYTHON) -m pytest -q -rs $(wildcard tests/python/peers/test_paddle*.py)

.PHONY: test-models
test-models: build ## trained networks of every format against the frameworks they are for, exported ones in ONNX Runtime (after `make bench-peers`)
	@tools/model_peers.sh build/bench/models build/models
	@OAR_FOREIGN_MODELS=build/models OAR_FOREIGN_PYTHON=build/bench/models/bin/python OAR_TORCH="$(OAR_TORCH)" OAR_PADDLE="$(OAR_PADDLE)" \
	  $(PYTHON) -m pytest -q -rs $(addprefix tests/python/peers/test_,real_models.py foreign_models.py torch_programs.py torch_scripts.py)
	@OAR_ONNX_RUNTIME=1 PYTHONPATH=build/python build/bench/models/bin/python -m pytest -q -rs tests/python/test_onnx_export.py

.PHONY: test-board
test-board: build ## the dashboard in a browser (Debian's Chromium); pictures of every tab in build/board
	@tools/setup.sh browser
	@$(PYTHON) -m pytest -q tests/board

.PHONY: test-kills
test-kills: build ## kills a training run at 50 random moments; it must go on to the bit
	@$(PYTHON) tests/python/kill_checkpoints.py --kills 50
	@$(PYTHON) tests/python/kill_checkpoints.py --kills 50 --async

FILE_FUZZERS = $(filter-out oar_fuzz_calls oar_fuzz_executor,$(patsubst tests/fuzz/%_fuzz.cpp,oar_fuzz_%,$(wildcard tests/fuzz/*_fuzz.cpp)))
export FUZZ_COUNT ?= 100000
.PHONY: fuzz-files
fuzz-files: setup ## damaged files of every format under the sanitizers (FUZZ_COUNT=1000000)
	@$(call compile,asan,$(FILE_FUZZERS))
	@tools/run_tests.sh asan files

.PHONY: fuzz-capture
fuzz-capture: build ## random functions, plain and captured, side by side (FUZZ_ARGS="--help")
	@$(PYTHON) tests/fuzz/to_static_fuzz.py $(FUZZ_ARGS)

.PHONY: fuzz-short-capture
fuzz-short-capture: build ## the first thousand of them
	@$(PYTHON) tests/fuzz/to_static_fuzz.py --count 1000 --seed 0 --jobs $(JOBS)

.PHONY: fuzz-fusion
fuzz-fusion: build ## random programs, fused and call by call (FUZZ_ARGS="--help")
	@$(PYTHON) tests/fuzz/fusion_fuzz.py $(FUZZ_ARGS)

.PHONY: fuzz-values
fuzz-values: build ## random calls of every op against NumPy, and PyTorch and Paddle if they are installed (FUZZ_ARGS="--help")
	@OAR_TORCH="$(OAR_TORCH)" OAR_PADDLE="$(OAR_PADDLE)" $(PYTHON) tests/fuzz/values_fuzz.py $(FUZZ_ARGS)

.PHONY: bench
bench: build ## compare with the peers (BENCH_ARGS="--quick", "--help")
	@PYTHONPATH=build/python $(PYTHON) benchmarks/bench.py $(BENCH_ARGS)

.PHONY: bench-calls
bench-calls: build ## the cost of one call, compared with NumPy
	@$(PYTHON) benchmarks/per_call.py $(BENCH_ARGS)

.PHONY: bench-linalg
bench-linalg: build ## linear algebra compared with NumPy, SciPy and PyTorch (BENCH_ARGS="--filter solve")
	@$(PYTHON) benchmarks/linalg.py $(BENCH_ARGS)

.PHONY: bench-memory
bench-memory: build ## kernels that only move memory, compared with NumPy's loops
	@PYTHONPATH=build/python $(PYTHON) benchmarks/memory_bound.py $(BENCH_ARGS)

.PHONY: bench-fft
bench-fft: build ## Fourier transforms, compared with SciPy and PyTorch
	@PYTHONPATH=build/python $(PYTHON) benchmarks/fft.py $(if $(wildcard $(OAR_TORCH)),--torch $(OAR_TORCH)) $(BENCH_ARGS)

.PHONY: bench-roofline
bench-roofline: build ## Oar compared with oneDNN called directly, and with plain loops
	@ninja -C build oar_roofline > /dev/null
	@build/bin/oar_roofline $(BENCH_ARGS)

.PHONY: bench-peers
bench-peers: setup ## install the newest PyTorch, PaddlePaddle, ONNX Runtime and OpenVINO for the benchmarks alone
	@tools/bench_peers.sh build/bench

.PHONY: check
check: build ## format, layers, names of ops, files, Python, types, spelling, headers, clang-tidy
	@tools/setup.sh check
	@tools/check.sh

.PHONY: check-quick
check-quick: build ## the same without headers and clang-tidy, which take long
	@tools/setup.sh check
	@tools/check.sh quick

.PHONY: check-slow
check-slow: build ## headers and clang-tidy alone
	@tools/setup.sh check
	@tools/check.sh slow

.PHONY: format
format: ## format the C++ sources
	@tools/setup.sh check
	@tools/format.sh --fix

.PHONY: wheel
wheel: setup ## build dist/*.whl and try it in a clean environment
	@tools/setup.sh wheel
	@tools/build_wheel.sh
	@tests/wheel/test_wheel.sh dist/*.whl

.PHONY: docs
docs: build ## bring generated pages up to date, put all pages and the reference together in build/docs
	@$(PYTHON) tools/missing_names.py
	@$(PYTHON) tools/build_docs.py --source . --build build

.PHONY: clean
clean: ## remove everything that was built (.venv stays)
	rm -rf build build-aarch64 build-asan build-debug build-deploy build-deploy-all build-tsan build-wasm build-wheel dist

# compile <preset> [target]...: everything unless targets are named.
# Configuring costs a second, so it happens only when a preset or the options changed; a change of
# a CMakeLists.txt is seen by Ninja. The lock is there because two builds at once in one folder spoil
# each other.
define compile
set -e; dir=build$(if $(filter-out release,$(1)),-$(1)); \
want="$(CONFIGURE_FLAGS) $$(cksum < CMakePresets.json)"; \
if [ ! -f $$dir/build.ninja ] || [ "$$(cat $$dir/.configured 2>/dev/null)" != "$$want" ]; then \
  cmake --preset $(1) $(CONFIGURE_FLAGS); echo "$$want" > $$dir/.configured; \
fi; \
flock $$dir/.configured cmake --build $$dir -j $(JOBS) $(addprefix --target ,$(2))
endef

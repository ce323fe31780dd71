# SPDX-License-Identifier: Apache-2.0
# The usual commands; CMakeLists.txt and scripts/ do the work.

PRESET ?= dev
JOBS ?= $(shell nproc)
BUILD := $(if $(filter dev,$(PRESET)),build,build-$(PRESET))

# Starts a recipe line that needs DRK_PYTHON, the interpreter that guests run in.
with_python = DRK_PYTHON=$$(scripts/setup_python.sh) && export DRK_PYTHON &&

.DEFAULT_GOAL := build
.PHONY: build demo test test-gpu fuzz bench hacks format format-check lint clean help setup

build: setup $(BUILD)/build.ninja ## Build build/bin/drk (PRESET=asan, tsan, ubsan, release or portable: build-PRESET/bin/drk)
	@$(with_python) cmake --build $(BUILD) -j $(JOBS)

demo: ## Judge the bundled problems: on the GPU if there is one, else by Triton's interpreter
	@$(with_python) build=$$(scripts/usable_build.sh) && $$build/bin/drk bench problems

test: build ## Run all tests that need no GPU
	@$(with_python) scripts/run_tests.sh $(BUILD)

test-gpu: ## Run the tests that need a GPU
	@scripts/test_gpu.sh

fuzz: setup ## Fuzz the HTTP border, SECONDS (300) for each target
	@JOBS=$(JOBS) scripts/fuzz.sh $(SECONDS)

bench: build ## Measure drkernel's own speed
	@$(with_python) bench/run.sh

hacks: build ## Judge the red team's candidates and, if DRK_CASES names a folder, its hacks and honest ones
	@$(with_python) $(BUILD)/bin/drk hacks --timeout 60 tests/redteam \
	  $${DRK_CASES:+"$$DRK_CASES/hacks" "$$DRK_CASES/honest"}

format: setup ## Format C++ and Python in place
	@scripts/format.sh

format-check: setup ## Fail where `make format` would change something
	@scripts/format.sh --check

lint: build ## Check the format, and C++ by clang-tidy
	@scripts/lint.sh $(BUILD)

clean: ## Remove all build folders
	rm -rf build build-*/

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:
	@scripts/setup_system.sh build
	@scripts/setup_python.sh >/dev/null

# Configures once, and again when the presets change; all else CMake sees to itself.
$(BUILD)/build.ninja: CMakePresets.json | setup
	@$(with_python) cmake --preset $(PRESET)
	@touch $@

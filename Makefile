# The front door. `make` alone lists what there is; every target installs what it needs first.
KERNEL ?= 6.1
CASES ?= tests/corpus/cases
BACKENDS ?= simulator,iptables-legacy,iptables-nft,nftables,tc-ebpf
PYTHON_RUN = .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup test check diff-test diff-test-host mutation golden clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

setup: ## .venv with .venv/bin/nfparity, and the system packages that the tests and the VM need
	@harness/setup.sh vm

test: ## unit tests and, as root, tests on the running kernel; skips say why
	@harness/setup.sh test
	$(PYTHON_RUN) -m pytest -m "not vm"

check: ## lint, types and unit tests; needs no root
	@harness/setup.sh check
	$(PYTHON_RUN) -m ruff check && $(PYTHON_RUN) -m ruff format --check && $(PYTHON_RUN) -m mypy
	$(PYTHON_RUN) -m pytest -q tests/unit tests/vm -m "not vm"

diff-test: ## every backend against the simulator on a Debian kernel in a VM (KERNEL=6.1 or 6.12); needs no root
	@harness/setup.sh vm
	$(PYTHON_RUN) -m vm --kernel $(KERNEL) -- $(PYTHON_RUN) -P -m harness.corpus_test

golden: ## write the expected outputs under tests/golden anew; review them as a diff
	@harness/setup.sh check

clean: ## remove the virtual environment, the build folder and caches
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .hypothesis

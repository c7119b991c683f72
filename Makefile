# The front door. Every target installs what it needs first; `make` alone lists them.
VM ?=
KERNEL ?=
USERLAND ?=
CASES ?= tests/corpus/cases tests/corpus/cases6 tests/corpus/cases-without-tc
LEVELS ?=
BACKENDS ?= simulator,iptables-legacy,iptables-nft,nftables,tc-ebpf
BENCH ?=
RULES ?=
SOAK ?=
SEEDS ?= 0-199
FLEET ?=
SERVICES ?= 10000
SUITE ?= trixie
RELEASE ?=

PYTHON_RUN := .venv/bin/python
# Tests of the kernel wait for a third of their time: for a namespace to end, for an answer that does not come.
WORKERS ?= $(shell echo $$(( $$(nproc) * 2 )))

# Tests start thousands of interpreters: what these import is compiled once, whatever the environment says, and before the
# workers of pytest begin, which would each compile all of it.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache
COMPILE := $(PYTHON_RUN) -m compileall -q -j 0 -x '/test_[^/]*\.py$$' translate backends harness nfparity vm deploy tests

.DEFAULT_GOAL := help
.PHONY: $(shell awk -F: '/^[a-z-]+:.*##/ { print $$1 }' $(firstword $(MAKEFILE_LIST)))

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## .venv with .venv/bin/nfparity, and everything that its commands need
	@vm/setup.sh run

test: ## unit tests and, as root, tests on the running kernel; a skipped test gives its reason
	@vm/setup.sh test
	@$(COMPILE)
	$(PYTHON_RUN) -m pytest -n $(WORKERS) -m "not vm and not slow"

test-all: ## the same with every exhaustive sweep
	@vm/setup.sh test
	@$(COMPILE)
	$(PYTHON_RUN) -m pytest -n $(WORKERS) -m "not vm"

test-vm: ## ipvs mode, assess, diff and migrate in guests with Debian's kernels (KERNEL=6.1|6.12: one); an hour without KVM
	@vm/setup.sh test && vm/setup.sh vm
	KERNEL=$(KERNEL) $(PYTHON_RUN) -m pytest -n0 -m vm tests/vm

check: ## lint, types and unit tests; needs no root
	@vm/setup.sh check
	$(PYTHON_RUN) -m ruff check && $(PYTHON_RUN) -m ruff format --check && $(PYTHON_RUN) -m mypy
	$(PYTHON_RUN) -m pytest -q -n auto tests/unit tests/vm -m "not vm and not slow"

diff-test: ## every backend against the simulator, at the fastest valid place (VM=kvm|host|emulated, KERNEL=6.1|6.12: a guest, USERLAND=bookworm|trixie, CASES=, LEVELS="0 1 2")
	@vm/setup.sh check
	@$(PYTHON_RUN) -m vm.difftest --vm "$(VM)" --kernel "$(KERNEL)" --userland "$(USERLAND)" --cases "$(CASES)" --levels "$(LEVELS)" --backends $(BACKENDS)

diff-test-host: ## the same with VM=host: on the running kernel, in network namespaces; needs root
	@$(MAKE) --no-print-directory diff-test VM=host

diff-test-rules: ## clusters of every kind and their generated corpora, on the running kernel; needs root
	@vm/setup.sh test
	$(PYTHON_RUN) -m tests.lab.selfcheck $(RULES)

diff-test-rules-vm: ## the same on a Debian kernel in the VM (KERNEL=, RULES=options); takes hours under emulation; no root
	@vm/setup.sh vm
	$(PYTHON_RUN) -m vm --kernel $(or $(KERNEL),6.1) --limit 86400 -- $(PYTHON_RUN) -m tests.lab.selfcheck $(RULES)

diff-test-tools: ## rules of ufw, Docker, libvirt, firewalld and others, and their generated corpora (TOOLS=names); needs root
	@vm/setup.sh test
	$(PYTHON_RUN) -m tests.lab.toolrules $(TOOLS)

diff-test-large: ## 10,000 services (SERVICES=), each used from every place, on the running kernel; needs root
	@vm/setup.sh test
	$(PYTHON_RUN) -m tests.lab.large --services $(SERVICES)

diff-test-random: ## random rulesets and flows of both families (SEEDS=0-199) on every backend; needs root
	@vm/setup.sh test
	$(PYTHON_RUN) -m tests.lab.random $(SEEDS)

bytecode: ## compare the bytecode of nft 1.0.6 and 1.1.3 for random rulesets (SEEDS=0-199) with their statements; needs root
	@vm/setup.sh test
	$(PYTHON_RUN) -m tests.lab.bytecode --seeds $(SEEDS) --nft "$$($(PYTHON_RUN) -m vm.nft bookworm)" --nft "$$($(PYTHON_RUN) -m vm.nft trixie)"

shares: ## 200,000 connections per backend: fair shares pass, and a share that is 1/100 too large is detected; needs root
	@vm/setup.sh test
	$(PYTHON_RUN) -m tests.lab.share_tests

mutation: ## plant faults in the translations and show which ones the packets detect; needs root
	@vm/setup.sh test
	$(PYTHON_RUN) -m tests.lab.mutation

translators: ## compare our translation with that of iptables-restore-translate, for the kind node and for single rules; needs root
	@vm/setup.sh test
	$(PYTHON_RUN) -m tests.lab.translators
	$(PYTHON_RUN) -m tests.lab.translated_rules

bench: ## loads, changes and packets side by side at growing sizes, into tests/lab/bench/RESULTS.md (BENCH=options); needs root
	@vm/setup.sh test
	@$(COMPILE)
	$(PYTHON_RUN) -m tests.lab.bench $(BENCH)

soak: ## ten minutes of real connections through a tc program that changes, into tests/lab/bench/SOAK.md (SOAK=options); needs root
	@vm/setup.sh test
	$(PYTHON_RUN) -m tests.lab.bench.soak $(SOAK)

fleet-bench: ## 1,000 snapshots assessed in dask workers, one of which is killed (FLEET=options); needs root
	@vm/setup.sh test
	$(PYTHON_RUN) -m tests.lab.bench.fleet $(FLEET)

golden: ## write the expected outputs (tests/golden, cases of passes) anew; review the change as a diff
	@vm/setup.sh check
	$(PYTHON_RUN) -m pytest -q tests/unit -k golden --golden-write

capture: ## build/nfparity-capture.pyz: nfparity capture in one file, for nodes with Python 3.8 and nothing else
	python3 -m nfparity.capture.package build/nfparity-capture.pyz

release: ## build/release: packages, archives and images with SHA256SUMS and SBOMs; publishes nothing; needs root
	@vm/setup.sh check
	$(PYTHON_RUN) -m deploy.release build/release $(RELEASE)

image: ## build/images: container images of nfparity and of the capture, with SBOMs (SUITE=trixie); needs root and debootstrap
	@vm/setup.sh check
	$(PYTHON_RUN) -m deploy.image build/images --suite $(SUITE)

site: ## build/site/html: the documentation as a site that needs no network
	@vm/setup.sh check
	@$(PYTHON_RUN) -m pip install --quiet --disable-pip-version-check --editable '.[site]'
	NO_MKDOCS_2_WARNING=1 $(PYTHON_RUN) -m deploy.site build/site

deb: ## build/nfparity_VERSION_all.deb, for Debian 12 and 13; needs no root
	@deploy/deb/build.sh

clean: ## remove .venv, the build folder and caches
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Every target creates what it needs; `make` alone lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name) 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin
CLUSTER ?= berth
NODES ?= hack/topologies/demo.yaml
KUBELETS ?= 3

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-zA-Z_.-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([^:]+):.*## (.*)/\1\t\2/' | \
	  while IFS=$$'\t' read -r target text; do printf '  %-16s %s\n' "$$target" "$$text"; done

# -- environment --------------------------------------------------------------------------------------------------

.PHONY: .venv
.venv: $(VENV)/.stamp ## the Python environment, with the locked dependencies and this project

$(VENV)/.stamp: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

.PHONY: lock
lock: .venv ## compile requirements.txt from pyproject.toml: exact versions with hashes, no host named
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --all-extras --generate-hashes --no-emit-index-url --no-header --python-version 3.11 pyproject.toml -o requirements.txt

# -- local cluster ------------------------------------------------------------------------------------------------

.PHONY: tools
tools: .venv ## build etcd, Kubernetes and KWOK (minutes the first time, cached outside the tree)
	hack/cluster build
	hack/cluster build kubelet pause

.PHONY: crio
crio: .venv ## build CRI-O, which some tests need (two minutes the first time, cached like the tools)
	$(BIN)/python -m hack.crio

.PHONY: cluster
cluster: .venv ## start a local cluster with 24 simulated nodes and kube-scheduler (CLUSTER=name, NODES=file)
	hack/cluster up --name $(CLUSTER) --nodes-file $(NODES) --with-scheduler

.PHONY: nodes
nodes: tools ## start a local cluster of real nodes with all of Berth on them, as root (CLUSTER=name, KUBELETS=count)
	$(BIN)/python hack/cluster up --name $(CLUSTER) --kubelets $(KUBELETS)
	$(BIN)/python hack/cluster image --name $(CLUSTER)
	hack/cluster kubectl --name $(CLUSTER) apply --server-side -k deploy
	hack/cluster kubectl --name $(CLUSTER) rollout status --namespace berth-system --timeout=300s deployment
	hack/cluster kubectl --name $(CLUSTER) rollout status --namespace berth-system --timeout=300s daemonset

.PHONY: cluster-status
cluster-status: .venv ## show the local cluster's components
	hack/cluster status --name $(CLUSTER)

.PHONY: cluster-down
cluster-down: ## stop and remove the local cluster
	hack/cluster down --name $(CLUSTER)

# -- generated files ----------------------------------------------------------------------------------------------

.PHONY: manifests
manifests: .venv ## write crds/ and docs/reference/ from the models of the kinds, the configuration and the settings
	$(BIN)/python -m hack.codegen

.PHONY: manifests-check
manifests-check: .venv ## fail with a diff if they differ from the models
	$(BIN)/python -m hack.codegen --check

# -- checks ---------------------------------------------------------------------------------------------------------

LINTERS := lint-types lint-contracts lint-layout lint-style manifests-check

# Side by side, since each takes one processor; the longest first.
.PHONY: lint
lint: .venv ## style, types, import contracts, layout of the tree, and whether generated files are fresh
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target $(LINTERS)

.PHONY: lint-style
lint-style: .venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check

.PHONY: lint-types
lint-types: .venv
	$(BIN)/mypy

.PHONY: lint-contracts
lint-contracts: .venv
	$(BIN)/lint-imports

.PHONY: lint-layout
lint-layout: .venv
	$(BIN)/python -m hack.layout

# -- tests ----------------------------------------------------------------------------------------------------------

# Each processor takes files of its own. Integration tests have a cluster for each process, whose files share it, and
# wait for others half of the time, so that there are more processes than processors; conftest.py has the longest files
# begin first. More than four processes would rather need memory than save time. Those from end to end take names and
# ports that the README states; they mostly wait for kubelets, and all others give way to them. What fails in up to four
# files is run once more, alone; what failed is shown again after everything else. CRI-O is built meanwhile: no unit test
# needs it, and the one from end to end that does waits for it.
TOLD := $(VENV)/failed
TRY := -m hack.second_try $(TOLD)
UNIT := -n auto --dist loadfile tests/unit
CLUSTERS := $(shell n=$$(nproc); echo $$((n < 3 ? n + 2 : 4)))
INTEGRATION := -n $(CLUSTERS) --dist loadfile --no-loadscope-reorder tests/integration

.PHONY: test
test: lint tools $(if $(TESTS),crio) ## everything CI runs: linters, then unit, end-to-end and integration tests (TESTS=path for a part)
ifdef TESTS
	$(BIN)/python -m pytest $(TESTS)
else
	@echo 'tests from end to end go on beside the others, and are shown after them'
	@set -m; rm -f $(TOLD); nice -n 10 $(BIN)/python -m hack.crio > $(VENV)/crio.log 2>&1 & crio=$$!; \
	  $(BIN)/python $(TRY) tests/e2e > $(VENV)/e2e.log 2>&1 & end_to_end=$$!; \
	  trap "kill -INT -- -$$end_to_end -$$crio 2> /dev/null; wait; exit 130" INT TERM; \
	  nice -n 10 $(BIN)/python $(TRY) $(UNIT) && { wait $$crio || { tail $(VENV)/crio.log >> $(TOLD); (exit 2); }; } && \
	    nice -n 10 $(BIN)/python $(TRY) $(INTEGRATION); others=$$?; \
	  case $$others in 2|130) kill -INT -- -$$end_to_end -$$crio 2> /dev/null;; esac; \
	  wait $$end_to_end; code=$$?; cat $(VENV)/e2e.log; cat $(TOLD) 2> /dev/null; test $$others -eq 0 -a $$code -eq 0
endif

.PHONY: test-vm
test-vm: tools crio ## tests of pinning in a virtual machine: two sockets, cgroups of version 2, a power cut (a few minutes)
	$(BIN)/python -m hack.vm --results $(VENV)/vm \
	  --boot tests/vm/pinning tests/vm/power_cut/test_before.py --boot tests/vm/power_cut/test_after.py

.PHONY: test-vm-systemd
test-vm-systemd: tools crio ## the same of runtimes whose containers systemd has in its slices; not in CI, for its time
	$(BIN)/python -m hack.vm --results $(VENV)/vm-systemd --systemd --boot tests/vm/pinning/test_runtime.py

.PHONY: unit
unit: .venv ## the unit tests alone: no cluster, a few minutes
	$(BIN)/python -m pytest $(UNIT)

# -- benchmarks -----------------------------------------------------------------------------------------------------

.PHONY: bench-phare
bench-phare: .venv ## the published gang placement experiments: a quarter of an hour (docs/benchmarks/phare.md)
	$(BIN)/python -m bench.phare run

.PHONY: bench-live
bench-live: .venv tools ## Berth against kube-scheduler on real control planes: half an hour (docs/benchmarks/live.md)
	$(BIN)/python -m bench.live --json bench/live/results.json
	$(BIN)/python -m bench.live.memory
	$(BIN)/python -m bench.live.memory --topology scale-5000 --pods 30000 --controllers placement

.PHONY: bench-latency
bench-latency: .venv ## where pods go for their users, simulated: 20 minutes of two processors (docs/benchmarks/latency.md)
	$(BIN)/python -m bench.latency

# -- demo -----------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: .venv ## place Online Boutique on a local cluster (or KUBECONFIG=file) and show what was decided and why
	$(BIN)/python -m hack.demo $(if $(findstring command,$(origin KUBECONFIG)),--kubeconfig $(KUBECONFIG))

.PHONY: demo-pinning
demo-pinning: tools ## two applications get a socket each, on a real node of this machine; as root
	$(BIN)/python -m hack.demo_pinning

.PHONY: demo-latency
demo-latency: tools ## an application follows its users, on three real nodes of this machine; as root
	$(BIN)/python -m hack.demo_latency

.PHONY: demo-down
demo-down: .venv ## stop what the demos have started
	$(BIN)/python -m hack.demo --down
	hack/cluster down --name demo-pinning
	hack/cluster down --name demo-latency

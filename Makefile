# Two commands matter: `make reproduce` and `make test`. Both set up everything they need in .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ANCHORS ?=
PEERS ?=

.PHONY: help setup test reproduce bench docs format clean

help: ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

setup: $(VENV)/.ready ## Make the virtual environment and install gqlab with pinned dependencies

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gqlab needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

test: setup ## Lint, types, doctests and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto --dist loadfile

reproduce: setup ## Run the experiments; tables on screen, figures under results/
	$(BIN)/gqlab reproduce

bench: setup ## Measure speed; ANCHORS=PATH and PEERS="NAME=PATH ..." are timed beside ours
	$(BIN)/python -m benchmarks $(if $(ANCHORS),--anchors $(ANCHORS)) $(foreach peer,$(PEERS),--peer $(peer))

docs: $(VENV)/.docs ## Build the documentation as a site in site/
	$(BIN)/sphinx-build -W --keep-going -q -b html docs site
	@echo "The documentation is in site/index.html"

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

format: setup ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove what was built
	rm -rf $(VENV) site build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

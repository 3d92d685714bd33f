# Two commands matter: `make reproduce` and `make test`. Both set up everything they need in .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ANCHORS ?=
PEERS ?=

.PHONY: help setup test bounds fuzz chaos reproduce bench gallery docs docs-check tutorials format clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

setup: $(VENV)/.ready ## Make the virtual environment and install gqlab with pinned dependencies

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gqlab needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,learn]'
	@touch $@

test: setup ## Lint, types, doctests and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto --dist loadfile

# Code that checks its bounds is other code: it has a cache of its own.
bounds: setup ## Run the compiled functions with checks of all array bounds
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/bounds $(BIN)/python -m pytest -n auto tests/unit/test_bounds.py tests/unit/test_vectors.py tests/unit/test_encoders.py

CASES ?= 100000
fuzz: setup ## 100,000 hostile calls, and damaged files, printed as figures; CASES=N for another number
	GQLAB_FUZZ_CASES=$(CASES) GQLAB_FUZZ_FILES=2000 $(BIN)/python -m pytest -s tests/fuzz/test_calls.py tests/fuzz/test_files.py

KILLS ?= 200
chaos: setup ## Kill the commands 200 times and compare all bytes; KILLS=N for another number
	GQLAB_CHAOS_KILLS=$(KILLS) $(BIN)/python -m pytest -s tests/fuzz/test_kills.py

reproduce: setup ## Run the experiments; tables on screen, figures under results/
	$(BIN)/gqlab reproduce

bench: setup ## Measure speed; ANCHORS=PATH and PEERS="NAME=PATH ..." are timed beside ours
	$(BIN)/python -m benchmarks $(if $(ANCHORS),--anchors $(ANCHORS)) $(foreach peer,$(PEERS),--peer $(peer))

gallery: setup ## Draw the pictures of docs/gallery again, and write its page
	$(BIN)/python docs/gallery/build.py

docs: $(VENV)/.docs ## Build the documentation as a site in site/
	$(BIN)/sphinx-build -W --keep-going -q -b html docs site
	@echo "The documentation is in site/index.html"

docs-check: $(VENV)/.docs ## Build the site anew and open every page in a browser: widths, links, headings, search
	rm -rf site
	$(MAKE) docs
	GQLAB_SITE=site $(BIN)/python -m pytest tests/site

tutorials: setup ## Run the tutorials, and write what they print and draw into their pages
	$(BIN)/python docs/executed.py

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

format: setup ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove what was built
	rm -rf $(VENV) site build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

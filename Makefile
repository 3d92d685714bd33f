# Two commands matter: `make reproduce` and `make test`. Both set up everything they need in .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ANCHORS ?=
PEERS ?=
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help setup test long python lowest bounds fuzz chaos reproduce bench gallery docs docs-check tutorials tables pictures package format clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

# Other targets need the environment alone; who asks for it is told how to enter it.
setup: $(VENV)/.ready ## Make the virtual environment and install gqlab with pinned dependencies
	@echo "Ready. To activate it: . $(BIN)/activate    then try: gqlab doctor"

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gqlab needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) 'pip>=25.1'
	$(INSTALL) --constraint constraints.txt --editable '.[learn,ray]' --group dev
	@touch $@

test: $(VENV)/.ready ## Lint, types, doctests and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto --dist loadfile

long: $(VENV)/.ready ## Run the tests that `make test` leaves out: siblings of those it has, which compile or start much
	$(BIN)/python -m pytest -n auto --dist loadfile -m long

python: ## Run the tests with another Python: make python PYTHON=python3.13
	$(MAKE) test VENV=.venv-$(notdir $(PYTHON))

# Old packages warn of what newer ones do otherwise: warnings are no errors here.
lowest: ## Run the tests with the lowest versions that pyproject.toml allows, in a virtual environment of its own
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	.venv-lowest/bin/python -m pip install --quiet --constraint constraints-lowest.txt --editable '.[learn]' --group test
	.venv-lowest/bin/python -m pytest -n auto --dist loadfile -o filterwarnings=default

bounds: $(VENV)/.ready ## Run the compiled functions with checks of all array bounds
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -n auto tests/learn/test_bounds.py tests/lab/test_vectors.py tests/encoders/test_encoders.py

CASES ?= 100000
fuzz: $(VENV)/.ready ## 100,000 hostile calls, and damaged files, printed as figures; CASES=N for another number
	GQLAB_FUZZ_CASES=$(CASES) GQLAB_FUZZ_FILES=2000 $(BIN)/python -m pytest -s tests/fuzz/test_calls.py tests/fuzz/test_files.py

KILLS ?= 200
chaos: $(VENV)/.ready ## Kill the commands 200 times, and the workers and drivers of sweeps, and compare all bytes; KILLS=N for another number
	GQLAB_CHAOS_KILLS=$(KILLS) GQLAB_CHAOS_SWEEPS=1 $(BIN)/python -m pytest -s -m 'long or not long' tests/fuzz/test_kills.py tests/fuzz/test_sweep_kills.py

reproduce: $(VENV)/.ready ## Run the experiments; tables on screen, figures under results/
	$(BIN)/gqlab reproduce

bench: $(VENV)/.ready ## Measure speed; ANCHORS=PATH and PEERS="NAME=PATH ..." are timed beside ours
	$(BIN)/python -m benchmarks $(if $(ANCHORS),--anchors $(ANCHORS)) $(foreach peer,$(PEERS),--peer $(peer))

gallery: $(VENV)/.ready ## Draw the pictures of docs/gallery again, and write its page
	$(BIN)/python docs/gallery/build.py

docs: $(VENV)/.docs ## Build the documentation as a site in site/
	$(BIN)/sphinx-build -W --keep-going -q -b html docs site
	@echo "The documentation is in site/index.html"

docs-check: $(VENV)/.docs ## Build the site anew and open every page in a browser: widths, links, headings, search
	rm -rf site
	$(MAKE) docs
	GQLAB_SITE=site $(BIN)/python -m pytest tests/site

tutorials: $(VENV)/.ready ## Run the tutorials, and write what they print and draw into their pages
	$(BIN)/python docs/_ext/executed.py

tables: $(VENV)/.ready ## Write the table of algorithms and places into its page
	$(BIN)/python docs/_ext/places.py

$(VENV)/.docs: $(VENV)/.ready
	$(INSTALL) --constraint constraints.txt --group docs
	@touch $@

pictures: $(VENV)/.ready ## Draw the pictures of the README anew, by the README's own code
	$(BIN)/python docs/_ext/readme_pictures.py

package: $(VENV)/.ready ## Build the wheel and the source distribution in dist/
	$(BIN)/hatchling build

format: $(VENV)/.ready ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove what was built
	rm -rf $(VENV) .venv-* site build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

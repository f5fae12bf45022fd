# Every target installs its requirements, with uv if it is installed and with venv and pip otherwise.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Marker files for the contents of the environment: only the package (for the demo), or the development tools too.
LIGHT_READY := $(VENV)/.ready-light
READY := $(VENV)/.ready
BROWSER_READY := $(VENV)/.ready-browser
SPARK_READY := $(VENV)/.ready-spark
DOCS_READY := $(VENV)/.ready-docs
LOWEST := .venv-lowest
LOWEST_READY := $(LOWEST)/.ready

install_group = if command -v uv >/dev/null 2>&1; then uv pip install --quiet --python $(BIN)/python --group $(1); \
	else $(BIN)/python -m pip install --quiet --disable-pip-version-check --group $(1); fi

.DEFAULT_GOAL := help
.PHONY: help environment demo offline test test-nightly test-fast test-numpy test-lowest test-browser test-spark fuzz check bench call-paths simulate docs screenshots format clean

help:  ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

# Installing builds the compiled kernel, and so does a change of its source. ABSTAIN_KERNEL=require makes it mandatory.
KERNEL := src/abstain/resampling/_kernel.c build_kernel.py hatch_build.py

# The progress lines name the packages that pip fetches. Warnings of pip go to stderr. --no-compile saves time: Python
# compiles the few modules that the demo imports.
$(LIGHT_READY): pyproject.toml $(KERNEL)
	@echo "Preparing $(VENV) (once): abstain and its requirements."
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
		uv pip install --python $(BIN)/python --editable . ; \
	else \
		$(PYTHON) -m venv $(VENV) && rm -f $(VENV)/.failed && \
		{ $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --no-compile --editable . || touch $(VENV)/.failed; } | \
			sed -n -e 's/^Collecting \([^ <>=!~;[]*\).*/  fetching \1/p' -e 's/^Installing collected packages.*/  installing/p' \
				-e 's/^Building wheels.*/  building abstain and its kernel/p' ; \
		test ! -e $(VENV)/.failed ; \
	fi
	@touch $@

$(READY): pyproject.toml $(KERNEL)
	@echo "Preparing $(VENV) (once): abstain, its test tools and the packages that it is compared with."
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
		uv pip install --quiet --python $(BIN)/python --group dev --editable . ; \
	else \
		$(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable . ; \
	fi
	@touch $(LIGHT_READY) $@

# The lowest versions that pyproject.toml allows for the requirements of the package, its extras and data frames. Everything
# else (test tools, peers) has the newest version that is compatible with them. Only uv supports this.
$(LOWEST_READY): pyproject.toml $(KERNEL)
	@echo "Preparing $(LOWEST) (once): the lowest versions that pyproject.toml allows."
	@$(PYTHON) -m venv $(LOWEST) && $(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	@$(LOWEST)/bin/uv pip compile --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --no-annotate \
		--all-extras --group frames pyproject.toml --output-file $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --constraint $(LOWEST)/lowest.txt \
		--group test --editable '.[excel,inspect,matplotlib]'
	@touch $@

$(BROWSER_READY): $(READY)
	@$(call install_group,browser)
	@touch $@

$(SPARK_READY): $(READY)
	@$(call install_group,spark)
	@touch $@

$(DOCS_READY): $(READY)
	@$(call install_group,docs)
	@touch $@

environment: $(READY) $(BROWSER_READY) $(SPARK_READY) $(DOCS_READY)  ## Install the requirements of all targets except test-lowest

demo: $(LIGHT_READY)  ## Evaluate and compare two classifiers that may abstain
	@echo "Training and evaluating two classifiers."
	@$(BIN)/abstain demo

offline: $(READY)  ## Run and evaluate a tiny model that is served on this machine, without a network
	@$(BIN)/python -m offline

# Compile modules and tests once, not in every process that a test starts.
unexport PYTHONDONTWRITEBYTECODE

# Tests already use every core, and threads of numpy's matrix library would only wait for each other.
export OPENBLAS_NUM_THREADS ?= 1

# The number of test processes. Default: one per core. WORKERS=0 runs all tests in one process.
WORKERS ?= logical
PYTEST = -m pytest -n $(WORKERS)
OLD_WARNINGS := $(addprefix -Wdefault::,DeprecationWarning PendingDeprecationWarning FutureWarning)

test: $(READY)  ## Run tests (without nightly ones), doctests and README examples, then the fuzzed inputs of every commit
	$(BIN)/python $(PYTEST) -m "not nightly"
	$(BIN)/python -m fuzz --seconds 0

test-nightly: $(READY)  ## Run the nightly tests: killed processes, full disks, memory, sanitizers
	$(BIN)/python $(PYTEST) -m nightly

# The tests of the packages that compute numbers, without files, pages, processes and simulations.
FAST := $(addprefix tests/,resampling metrics inference evaluation test_confidence.py test_items.py test_labels.py test_losses.py)

# One process, because each worker would import the package and its peers again.
test-fast: WORKERS = 0
test-fast: $(READY)  ## Run the fast tests of numbers and rules, in half a minute
	$(BIN)/python $(PYTEST) -m "not slow and not nightly" $(FAST)

# The kernel tests compare the kernel with numpy, so they are not needed here.
test-numpy: $(READY)  ## Run the fast tests without the compiled kernel
	ABSTAIN_KERNEL=skip $(BIN)/python $(PYTEST) -m "not slow and not nightly" --ignore tests/resampling/test_kernel.py $(FAST)

# Old releases cause deprecation warnings of each other, so these are not errors here. In `make test` they are.
test-lowest: $(LOWEST_READY)  ## Run the tests with the lowest allowed versions (Python 3.11). SELECT="not slow" selects tests
	$(LOWEST)/bin/python $(PYTEST) $(OLD_WARNINGS) -m "not nightly $(if $(SELECT),and ($(SELECT)))"

test-browser: $(BROWSER_READY) $(DOCS_READY)  ## Test the report and the site in a browser (needs chromium: apt-get install chromium)
	$(BIN)/python -m pytest tests_browser

test-spark: $(SPARK_READY)  ## Test aggregation in Spark (needs Java: apt-get install openjdk-17-jre-headless)
	$(BIN)/python -m pytest tests_spark

fuzz: $(READY)  ## Run every command on hostile and valid input for FUZZ_SECONDS. Default: 300
	FUZZ_SECONDS=$${FUZZ_SECONDS:-300} $(BIN)/python -m fuzz

check: $(READY)  ## Check lint, format, types, layers and prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_prose.py

bench: $(READY)  ## Measure speed as ratios against peers, with one thread
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m benchmarks

call-paths: $(READY)  ## Print how many modules and functions typical calls enter
	@$(BIN)/python -m benchmarks.call_paths

# RUNS is the number of data sets per cell. OPTIONS are further options of `python -m simulations`.
RUNS ?= 400
OPTIONS ?=

simulate: $(READY)  ## Simulate how often intervals contain the true value, and continue a stopped run (RUNS=400 OPTIONS="--clusters 10,20")
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m simulations --runs $(RUNS) $(OPTIONS)

docs: $(DOCS_READY)  ## Generate pages from the code, and build the site in site/ without a network
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

screenshots: $(BROWSER_READY)  ## Create the screenshots of README and docs (needs chromium)
	$(BIN)/python docs/screenshots.py

# Format the code even if ruff reports problems that it cannot fix.
format: $(READY)  ## Apply ruff's fixes, format the code, and report the remaining problems
	@$(BIN)/ruff check --fix .; status=$$?; $(BIN)/ruff format . && exit $$status

clean:  ## Remove the environments and caches
	rm -rf $(VENV) $(LOWEST) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

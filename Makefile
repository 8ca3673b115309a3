# The two commands of a newcomer are `make demo` and `make test`; each sets up what it needs.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: browser demo java test test-all test-long test-lowest test-spark check bench docs dist stranger clean

demo: .venv
	$(BIN)/lapras demo

test: check

# The tests on a real Spark cluster, beside the gate; without Java they are skipped, and say so.
test-spark: .venv java
	LAPRAS_SPARK=1 $(BIN)/python -m pytest tests/test_spark.py tests/test_engine.py tests/test_engine_statements.py
	LAPRAS_SPARK=1 $(BIN)/python -m pytest tests/test_pages.py -k spark

java:
	@command -v java >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless; } \
	  || echo "there is no Java: the tests of Spark are skipped"

check: .venv browser
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/check

# What the tests of the service's pages need, likewise.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
	  || echo "there is no Chromium: the tests of pages are skipped"

bench: .venv
	$(BIN)/python -m benchmarks solver
	$(BIN)/python -m benchmarks stream

# The site, in build/site; a warning is an error.
docs: .venv
	$(BIN)/sphinx-build -q -E -b html -W --keep-going -d build/doctrees docs build/site
	$(BIN)/python scripts/llms.py build/site

# What takes an hour, and tries as many as ten times what the gate tries.
LONG := row_local select_drawn ledger_mutants session_life ledger_race sql_words sql_types \
  persons primm_product duckdb windows_life ledger
test-long: .venv
	LAPRAS_ROW_EXAMPLES=5000 LAPRAS_DRAWN=2500 LAPRAS_MUTANTS=all LAPRAS_SESSION_ROUNDS=200 LAPRAS_RACE_ASKS=1000 LAPRAS_WHOLE_SQL=1 LAPRAS_TRIES=4 \
	  $(BIN)/python -m pytest --numprocesses 2 $(LONG:%=tests/test_%.py)

# The gate on every Python that is installed.
test-all:
	for version in 3.11 3.12 3.13 3.14; do \
	  if command -v python$$version >/dev/null; then \
	    rm -rf .venv && $(MAKE) test PYTHON=python$$version || exit 1; \
	  else echo "python$$version is not installed: skipped"; fi; \
	done

# The tests with the lowest versions that pyproject.toml allows of what every table and statement goes through.
# Not the hooks, nor what is shown of figures: an optimiser of another version may end 0.1 beside them.
SHOWN := contributing gallery pages
LOWEST := numpy==2.1.0 scipy==1.14.0 duckdb==1.5.2 sqlglot==30.8.0 threadpoolctl==3.5.0
test-lowest:
	$(PYTHON) -m venv build/lowest
	printf '%s\n' $(LOWEST) | cat - constraints.txt | awk -F== '!seen[tolower($$1)]++' > build/lowest.txt
	build/lowest/bin/python -m pip install --quiet --constraint build/lowest.txt --editable '.[dev]'
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 build/lowest/bin/python -m pytest --numprocesses 2 $(SHOWN:%=--ignore=tests/test_%.py) tests

# What is published, the same bytes for the same commit: wheel, sdist, and a list of what they stand on.
dist: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
dist: .venv
	rm -rf dist build/dist
	$(BIN)/python -m pip install --quiet --constraint constraints.txt '.[dist]'
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz
	$(PYTHON) -m venv build/dist
	build/dist/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	build/dist/bin/python -m pip uninstall --quiet --yes pip setuptools
	$(BIN)/cyclonedx-py environment --output-reproducible --mc-type library --pyproject pyproject.toml -o dist/lapras-dp.cdx.json build/dist/bin/python

# The steps of two tutorials in a new environment that has only the wheel, timed.
stranger: dist
	$(PYTHON) scripts/stranger.py dist/*.whl

# `make .venv` builds the virtual environment; it is rebuilt when the pinned versions change.
.venv: .venv/.complete

.venv/.complete: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist out

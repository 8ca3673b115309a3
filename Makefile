# The two commands of a newcomer are `make demo` and `make test`; each sets up what it needs.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: demo test check bench docs clean

demo: .venv
	$(BIN)/lapras demo

test: check

check: .venv
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/check

bench: .venv
	$(BIN)/python -m benchmarks solver
	$(BIN)/python -m benchmarks stream

# The site, in build/site; a warning is an error.
docs: .venv
	$(BIN)/sphinx-build -q -E -b html -W --keep-going -d build/doctrees docs build/site
	$(BIN)/python scripts/llms.py build/site

# `make .venv` builds the virtual environment; it is rebuilt when the pinned versions change.
.venv: .venv/.complete

.venv/.complete: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist out

# Every target sets up what it needs: a virtual environment of its own in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all lint types benchmarks clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

demo: $(VENV)/.installed
	$(BIN)/strads demo

test: lint types
	$(BIN)/python -m pytest

# With the heavy tests too (about 10 minutes on 2 cores).
test-all: lint types
	$(BIN)/python -m pytest -m "slow or not slow"

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist

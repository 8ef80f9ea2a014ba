# Every target sets up what it needs: a virtual environment of its own in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# The tests start hundreds of processes: they share the package's bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-clusters test-all fuzz fuzz-loops fuzz-files replicas seeds peers crashes lint types clean

# Of the packages only the modules that are imported get bytecode, once they are.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[test]"
	touch $@

demo: $(VENV)/.installed
	$(BIN)/strads demo

# Most tests compile: two at a time. Those that start clusters come last, and find on disk what the others have compiled;
# they mostly wait, so types are checked meanwhile.
test: lint
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --ignore tests/cluster
	$(MAKE) --jobs 2 types test-clusters

# Those of MPI and of Ray do not meet.
test-clusters: $(VENV)/.installed
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile tests/cluster

# With the heavy tests too.
test-all: lint types
	$(BIN)/python -m pytest -m "slow or not slow"

# Both fuzzers, of loops and of files.
fuzz: fuzz-loops fuzz-files

# Random loops against plain Python; BODIES=… SCENARIOS=… SEED=… JOBS=… choose how many.
BODIES ?= 1000
SCENARIOS ?= 25
SEED ?= 0
JOBS ?= 2
fuzz-loops: $(VENV)/.installed
	$(BIN)/python -m tests.fuzz --seed $(SEED) --bodies $(BODIES) --scenarios $(SCENARIOS) --jobs $(JOBS)

# Damaged files, arguments and models: refused or read as they are; CASES=… chooses how many.
CASES ?= 20000
fuzz-files: $(VENV)/.installed
	$(BIN)/python tests/fuzz/files --seed $(SEED) --cases $(CASES)

# Models that are fed a log of batches, on different threads and nodes, killed and restarted; BATCHES=… KILLS=… choose how
# often, for each of the four models.
BATCHES ?= 1000
KILLS ?= 50
replicas: $(VENV)/.installed
	$(BIN)/python tests/replicas --seed $(SEED) --batches $(BATCHES) --kills $(KILLS)

# One SHA-256 of each model on threads, nodes, MPI and Ray; RUNS=… chooses how many fits at each place.
RUNS ?= 10
seeds: $(VENV)/.installed
	$(BIN)/python tests/one_seed --runs $(RUNS)

# Tests of scikit-learn, celer, skglm, implicit and gensim with our classes in place of theirs; SUITES=… chooses some.
SUITES ?=
peers: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet celer skglm implicit gensim testfixtures
	$(BIN)/python tests/peers $(SUITES)

# Programs killed at random moments and continued, on threads, MPI and Ray; CRASHES=… chooses how many on threads.
CRASHES ?= 300
crashes: $(VENV)/.installed
	$(BIN)/python tests/checkpoints/crash_harness.py --kills $(CRASHES)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist

# Everything runs in .venv, made on first use from Python >= 3.11 (set PYTHON to choose another).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
EXTRAS ?=
DATA   ?=
comma  := ,
TORCH  := $(shell sed -n 's/.*"\(torch==[^"]*\)".*/\1/p' pyproject.toml)
WORKERS ?= 2
MINUTES ?= 5
SEED ?= 0

.PHONY: demo test test-lowest release-check lint coverage bench bench-quick soak fuzz mutants docs pages rates clean

demo: $(VENV)/.core
	$(BIN)/gordan demo

test: $(VENV)/.test lint
	$(BIN)/python -m pytest -n $(WORKERS) -q --durations=20

# The suite with exactly the lowest versions in pyproject.toml. Old packages beside newer ones warn of each other's deprecated names,
# which the pages, where every warning is shown, do not have.
test-lowest: $(VENV)/lowest/.test
	$(VENV)/lowest/bin/python -m pytest -n $(WORKERS) -q -W ignore::DeprecationWarning --ignore=tests/test_pages.py

# sdist and wheel, and what they do in empty environments, extra by extra
release-check:
	$(PYTHON) tests/release.py

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Branch coverage of src, at least 95%. Compiled code cannot be watched: the suite runs as it is, and then the tests of the kernels
# on small data once more with NUMBA_DISABLE_JIT, as plain Python, where numpy warns of scalars that wrap or overflow and machine code
# does not. The folder for compiled kernels starts empty, so that what runs while they are compiled counts.
coverage: $(VENV)/.test
	rm -rf .coverage.d && mkdir .coverage.d
	NUMBA_CACHE_DIR=$(CURDIR)/.coverage.d/kernels $(BIN)/coverage run -m pytest -n $(WORKERS) -q --deselect $(SIGNALLED)
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -n $(WORKERS) -q -W ignore::RuntimeWarning $(KERNELS) -k 'not ($(LARGE))'
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --fail-under=95

# coverage holds a lock that a handler of a signal may leave, and the program then waits forever
SIGNALLED := tests/test_checkpoint.py::test_sigterm_to_the_program

KERNELS := $(patsubst %,tests/test_%,rows.py accepted.py visiting.py io.py io_text.py io_arrays.py io_columns.py $\
	double_oracle.py block_ascent.py bad_input.py::test_not_finite_in_a_pass)
LARGE := 1027x2 or 259x6 or 9000 or threads or large or enormous or any_ or memory_map or damaged or long $\
	or many_rows or quick_way or types or come_and_go or wide_rows or working_set_holds or compiles

# DATA is a folder of sets (see docs/benchmarks.md); RESUME=1 keeps what a stopped run has measured at the same commit.
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/compare.py all --data "$(DATA)" $(if $(RESUME),--resume)
	$(BIN)/python benchmarks/readme.py
	$(BIN)/python benchmarks/rounds.py
	$(BIN)/python benchmarks/verify.py
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/accuracy.py

bench-quick: $(VENV)/.bench
	$(BIN)/python benchmarks/compare.py all --quick --data "$(DATA)" --out docs/_build/bench-quick

soak: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) -q -m soak -rP tests --soak

# random problems against the exact oracle: make fuzz MINUTES=60 WORKERS=8 SEED=1
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz.py --minutes $(MINUTES) --workers $(WORKERS) --seed $(SEED)

# one small change of the source after the other, each to be noticed by some test: make mutants SHARD=certificates/bounds; what was
# decided is in .mutants and not tried again
mutants: $(VENV)/.mutation
	$(BIN)/python tests/mutants.py $(SHARD)

rates: $(VENV)/.bench
	$(BIN)/python examples/rates.py --out docs/rates

# runs every session in the pages again and writes what comes out, draws their pictures, takes screenshots (needs Chromium and jq)
pages: $(VENV)/.docs
	$(BIN)/python docs/pages.py
	$(BIN)/python docs/pictures.py

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) docs/_build .coverage.d .mutants

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "gordan needs Python 3.11 or newer; set PYTHON=/path/to/python3")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

# EXTRAS=test-gpu adds torch's CPU build and Triton's interpreter, on which the rows of a GPU are tested. EXTRAS=auto does so unless pip
# would bring CUDA's libraries with them, which are gigabytes, or finds no such torch.
$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	extras='$(EXTRAS)'; if [ "$$extras" = auto ]; then \
		found=$$($(BIN)/python -m pip install --disable-pip-version-check --dry-run --ignore-installed '$(TORCH)' 2>/dev/null | grep '^Would install'); \
		case "$$found" in *nvidia*|*cuda*|'') extras=; echo 'torch is left out: no build of it for the CPU alone was found';; *) extras=test-gpu;; esac; fi; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test$${extras:+,$$extras}]"
	touch $@

$(VENV)/lowest/.test: $(VENV)/bin/python pyproject.toml
	$(PYTHON) -m venv $(VENV)/lowest
	$(PYTHON) tests/release.py --lowest > $(VENV)/lowest/versions.txt
	$(VENV)/lowest/bin/python -m pip install --quiet --disable-pip-version-check -c $(VENV)/lowest/versions.txt -e '.[test]'
	touch $@

$(VENV)/.docs $(VENV)/.bench $(VENV)/.mutation: $(VENV)/.%: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*$(if $(EXTRAS),$(comma)$(EXTRAS))]'
	touch $@

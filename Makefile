# A fresh clone needs python3 (3.11 or newer, with venv) and make. Everything else goes into .venv.

PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := $(BIN)/python3 -m pip install -qq --disable-pip-version-check -c constraints.txt
EXTRAS := dev,adk,pydantic-ai,langgraph,openai-agents,openai,google,anthropic,watch,web,postgres,docs

# Compiled code is what users run, so it is what we test and time.
unexport PYTHONDONTWRITEBYTECODE

# A gate that holds says nothing; one that does not says everything.
quietly = @out=$$($(1) 2>&1) || { printf '%s\n' "$$out"; exit 1; }

.PHONY: demo test pytest test-all heavy thorough second-versions ray inspect local-model bench torture coverage docs gates lint types browser postgres wheel

demo: .venv/.base
	@$(BIN)/greenroom demo

# Installs on a machine that has Python and pip, with whatever extras: pip install 'dist/NAME.whl[openai]'.
wheel: .venv/.base
	@$(BIN)/python3 -m pip wheel -qq --disable-pip-version-check --no-deps -w dist .
	@ls dist/*.whl

# Types are checked beside the tests, since that takes a minute of one core.
test: lint browser
	@$(MAKE) --no-print-directory -j 2 types pytest

# Four workers on two cores: nearly half of the time a test waits for a process, a page or a clock.
pytest: .venv/.tests
	@$(BIN)/pytest -q -n 4 --dist worksteal || { test $$? = 1 && $(BIN)/python scripts/tests_alone.py; }

# Every part is a target of its own; `make -k test-all` goes on after one that fails.
test-all: test heavy thorough second-versions ray inspect local-model coverage

heavy: .venv/.dev browser postgres
	@$(BIN)/pytest -q -n 2 --dist worksteal -m "(heavy or deep) and not torture" --hypothesis-profile=deep

thorough: .venv/.dev
	@$(BIN)/pytest -q -n 2 --dist worksteal -m "hypothesis and not heavy and not deep and not torture" --hypothesis-profile=thorough

second-versions:
	@scripts/second_versions.sh

ray:
	@scripts/ray.sh

inspect:
	@scripts/inspect.sh

local-model:
	@scripts/local_model.sh

torture: .venv/.dev
	@$(BIN)/pytest -q -m torture

# Which lines no test has run; fails below nine in ten. Tests of deadlines and of what is imported do
# not hold while every line is traced, so it is `make test` that says whether tests pass. Left out are cuts,
# which take long, and kills: on a busy machine CPython 3.11 may hang if a traced thread meets a signal.
coverage: .venv/.dev
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q -n 2 --dist worksteal --ignore tests/resume --ignore tests/torture || true
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report --skip-covered --sort cover --fail-under 90

bench: .venv/.dev
	@$(BIN)/python benchmarks/run.py

# The documentation as a site with search; a page that is linked nowhere, or a link that leads nowhere, fails.
docs: .venv/.dev
	@$(BIN)/python -m sphinx -q -n -W --keep-going -c docs -d build/trees . build/site
	@echo "open build/site/index.html"

gates: lint types

lint: .venv/.dev
	$(call quietly,$(BIN)/ruff format --check .)
	$(call quietly,$(BIN)/ruff check .)
	$(call quietly,$(BIN)/lint-imports)

types: .venv/.dev
	$(call quietly,$(BIN)/basedpyright)

# Pages are tested in a real browser; where none can be had, those tests say that they were skipped.
browser:
	@scripts/install_browser.sh

# Stores on a server are tested on a real one; where none can be had, those tests say that they were skipped.
postgres:
	@scripts/install_postgres.sh

# The stamps remember what was installed from which pyproject.toml and constraints.txt.
.venv/.base: pyproject.toml constraints.txt | $(BIN)/python3
	@$(PIP_INSTALL) -e .
	@touch $@

.venv/.dev: pyproject.toml constraints.txt | $(BIN)/python3
	@$(PIP_INSTALL) -e '.[$(EXTRAS)]'
	@touch .venv/.base $@

# After an installation the tests are compiled once, and not by every worker.
.venv/.tests: .venv/.dev
	@$(BIN)/pytest -qq --collect-only -p no:xdist >.venv/.tests.log 2>&1 || { cat .venv/.tests.log; exit 1; }
	@touch $@

$(BIN)/python3:
	@$(PYTHON) -m venv .venv

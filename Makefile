# The commands of the project. Each target first installs what it needs; only the first run takes long.
PYTHON ?= python3
export PYTHON
# Write bytecode files even if the environment forbids it. Otherwise each run compiles everything again for seconds.
export PYTHONDONTWRITEBYTECODE =
SETUP = venv=$$(./setup.sh) && PATH="$$venv/bin:$$PATH" && export PATH
TEST_SETUP = venv=$$(./setup.sh test) && PATH="$$venv/bin:$$PATH" && export PATH

.DEFAULT_GOAL := help
.PHONY: help run test check sweep services postgres speech pages screenshots soak bench docs picture audit locks

help:
	@echo "make run       start Mneme on every platform that has a token, otherwise in this terminal"
	@echo "make test      run all linters and tests but the sweeps, minutes on 2 cores"
	@echo "make sweep     run the tests with more kill points and rows than make test"
	@echo "make check     run linters and quick tests, under 40 seconds"
	@echo "make services  test the memory services with the real programs, up to 25 minutes"
	@echo "make postgres  run the tests of everything that is stored on a real PostgreSQL server, minutes"
	@echo "make speech    test voice notes and spoken answers with real speech, which it installs if it may; minutes"
	@echo "make pages     test the page in a real browser, which it installs if it may; minutes"
	@echo "make screenshots  draw each whole page in light and dark and at the width of a phone, into site/pages/"
	@echo "make soak      run tests with kills, fuzzing and load; takes long"
	@echo "make bench     measure speed and quality; takes long"
	@echo "make docs      build the documentation as a site in site/"
	@echo "make locks     write the lock files with hashes from pyproject.toml and constraints.txt"
	@echo "make audit     ask a vulnerability database about the pinned versions"
	@echo "make picture   draw the picture of the README again"

run:
	@$(SETUP) && exec python -m gateway.cli.main run

# Each of the processes that run the tests would otherwise compile all modules in a new clone.
COMPILE = python -m compileall -q -j 2 config core adapters gateway tests/fixtures
# pytest compiles the tests itself, with their assertions rewritten. It does so here once, on the core that mypy leaves free.
MYPY = (python -m pytest -q --collect-only >/dev/null 2>&1 & python -m mypy && wait)

# Lists the slowest tests, so that what takes too long is seen.
test:
	@$(TEST_SETUP) && $(COMPILE) && python -m ruff check . && python -m ruff format --check . && lint-imports --no-logo >&2 && $(MYPY) && python -m pytest -q -n 4 --dist worksteal --durations 20 --durations-min 5 -m "not sweep and not services and not pages"

check:
	@$(TEST_SETUP) && $(COMPILE) && python -m ruff check . && python -m ruff format --check . && lint-imports --no-logo >&2 && python -m pytest -q -n auto --maxprocesses 8 --dist worksteal -m "not slow and not sweep and not services and not pages"

# What make test leaves out: every kill point, tool and row of what make test shows with a few.
sweep:
	@$(TEST_SETUP) && python -m pytest -q -n 4 --dist worksteal -m "sweep and not services and not pages"

# Installs the services into the folder MNEME_SERVICES. mem0 is a library that runs in our process, so its environment also
# contains Mneme.
services:
	@$(TEST_SETUP) && sh tests/services/setup.sh && sh tests/services/run.sh

# Runs the tests of the store, search, facts, privacy, scheduling and whole gateways, with their stores on PostgreSQL. Tests
# with the mark sqlite are about the file state.db. Without PostgreSQL, the tests are skipped with a sentence. With
# MNEME_POSTGRES_REQUIRED=1, they fail.
postgres:
	@$(TEST_SETUP) && MNEME_TEST_STORE=postgres python -m pytest -q -n 4 --dist worksteal -m "not sqlite and not sweep and not services and not pages" \
		--ignore tests/store/sqlite tests/store tests/search tests/facts tests/privacy tests/scheduling tests/end_to_end

# Real speech: espeak-ng and pocketsphinx, which are installed outside of this folder if they may be. Without them, the tests
# are skipped with a sentence. With MNEME_SPEECH_REQUIRED=1, they fail.
speech:
	@$(TEST_SETUP) && MNEME_SPEECH=$$(sh tests/speech/setup.sh) && export MNEME_SPEECH && python -m pytest -q tests/speech

# Without a browser, the tests are skipped with a sentence. With MNEME_PAGES_REQUIRED=1, they fail.
PAGES_SETUP = venv=$$(./setup.sh pages) && PATH="$$venv/bin:$$PATH" && export PATH && sh tests/pages/setup.sh
pages:
	@$(PAGES_SETUP) && python -m pytest -q -m pages tests/pages

screenshots:
	@$(PAGES_SETUP) && python -m tests.pages.screenshots

# make soak PART=kills runs only the files of tests/soak whose names contain "kills": 1,400 kills. If no file there has the name,
# as with PART=full_disk, it runs the other tests with it.
# Without PART, the tests of outages (one minute, 40 minutes, three days), locks, full disks and lost files run, too.
# SEED=7 repeats the choices of a run that printed this number.
FAULTS = tests/gateway/test_outages.py tests/gateway/test_store_lock.py tests/end_to_end/test_full_disk.py tests/end_to_end/test_lost_files.py \
	tests/store/sqlite/test_missing_file.py
soak:
ifdef PART
	@$(TEST_SETUP) && files=$$(ls tests/soak/test_*$(PART)*.py 2>/dev/null || find tests -name 'test_*$(PART)*.py') && \
	if [ -n "$$files" ]; then python -m pytest -q --timeout 3600 $$files; else echo "No test has the name $(PART)."; exit 1; fi
else
	@$(TEST_SETUP) && python -m pytest -q --timeout 3600 tests/soak $(FAULTS) && python -m pytest -q --timeout 3600 -m hypothesis --hypothesis-profile thorough
endif

docs:
	@venv=$$(./setup.sh docs) && PATH="$$venv/bin:$$PATH" && export PATH && python -m tests.tools.build_site

# Writes the lock files with hashes from pyproject.toml and constraints.txt. Needs uv on the PATH.
LOCK = uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--constraint constraints.txt --quiet
locks:
	@command -v uv >/dev/null || { echo "make locks needs uv: pip install uv"; exit 1; }
	@$(LOCK) --extra postgres --output-file requirements.lock
	@$(LOCK) --extra test --extra pages --output-file requirements-test.lock

# Fails with 2 if the database can't be reached.
audit:
	@$(TEST_SETUP) && python -m tests.tools.audit

picture:
	@$(SETUP) && python -m tests.tools.draw_picture

# The benchmarks get the arguments after the dashes: make bench -- --only recall
bench:
	@$(TEST_SETUP) && python -m tests.bench $(filter-out bench,$(MAKECMDGOALS))

ifeq (bench,$(firstword $(MAKECMDGOALS)))
%:
	@:
endif

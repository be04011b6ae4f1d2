# What people run. Each target sets up what it needs by itself; only the first time takes long.
PYTHON ?= python3
export PYTHON
# Bytecode is kept, also where the environment says otherwise: compiling everything anew takes seconds each time.
export PYTHONDONTWRITEBYTECODE =
SETUP = venv=$$(./setup.sh) && PATH="$$venv/bin:$$PATH" && export PATH
TEST_SETUP = venv=$$(./setup.sh test) && PATH="$$venv/bin:$$PATH" && export PATH

.DEFAULT_GOAL := help
.PHONY: help run test check services soak bench docs picture

help:
	@echo "make run    starts the assistant: every platform that has a token, otherwise a chat in this terminal"
	@echo "make test   the whole check, at most 4 minutes"
	@echo "make check  its quick part, under 40 seconds"
	@echo "make services  memory services as they really are, in environments of their own; at most 15 minutes"
	@echo "make soak   kills, fuzzing and load; takes long"
	@echo "make bench  how fast and how good; takes long"
	@echo "make docs   the documentation as a site, in site/"
	@echo "make picture  draws the picture of the README again"

run:
	@$(SETUP) && exec python -m gateway.cli.main run

test:
	@$(TEST_SETUP) && python -m ruff check . && python -m ruff format --check . && lint-imports --no-logo >&2 && python -m mypy && python -m pytest -q -n 4 --dist worksteal -m "not services"

check:
	@$(TEST_SETUP) && python -m ruff check . && python -m ruff format --check . && lint-imports --no-logo >&2 && python -m pytest -q -n 3 --dist worksteal -m "not slow and not services"

# mem0 is a library, which runs with us in one process: its environment has us beside it. MNEME_SERVICES: where they lie.
services:
	@$(TEST_SETUP) && sh tests/services/setup.sh && sh tests/services/run.sh

soak:
	@$(TEST_SETUP) && python -m pytest -q --timeout 3600 tests/soak && python -m pytest -q --timeout 3600 -m hypothesis --hypothesis-profile thorough

docs:
	@venv=$$(./setup.sh docs) && PATH="$$venv/bin:$$PATH" && export PATH && python -m tests.tools.build_site

picture:
	@$(SETUP) && python -m tests.tools.draw_picture

# make bench -- --only recall: what stands behind the dashes is for the benchmarks.
bench:
	@$(TEST_SETUP) && python -m tests.bench $(filter-out bench,$(MAKECMDGOALS))

ifeq (bench,$(firstword $(MAKECMDGOALS)))
%:
	@:
endif

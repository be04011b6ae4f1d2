#!/bin/sh
# Creates the virtual environment and prints its folder, the only output on stdout. `./setup.sh test` also installs what the
# checks need, `./setup.sh docs` also what builds the documentation,
# `./setup.sh pages` also what drives a browser. Installs nothing if the environment matches
# pyproject.toml and constraints.txt. Used by the Makefile.
set -eu
cd "$(dirname "$0")"
here=$(pwd)
wanted=$(cat pyproject.toml constraints.txt | cksum)
case "${1:-}" in
    "") extras="" ;;
    test) extras="[test]" ;;
    docs) extras="[test,docs]" ;;
    pages) extras="[test,pages]" ;;
    *)
        printf 'Usage: ./setup.sh [test|docs|pages]\n' >&2
        exit 2
        ;;
esac

# Returns whether an environment has the required packages. One with more extras is fine.
is_ready() {
    installed=$(cat "$1/ready" 2>/dev/null) || return 1
    case "$installed" in
        "$here $wanted $extras") ;;
        "$here $wanted [test"*) [ "$extras" = "" ] || [ "$extras" = "[test]" ] || return 1 ;;
        *) return 1 ;;
    esac
    "$1/bin/python" -c "" 2>/dev/null
}

say() {
    printf '%s\n' "$*" >&2
}

# If .venv belongs to another user and does not fit, create our own environment in the cache folder.
venv=$here/.venv
if is_ready "$venv"; then
    printf '%s\n' "$venv"
    exit 0
fi
if [ -e "$venv" ] && [ ! -w "$venv" ]; then
    venv=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/mneme/venv-$(printf '%s' "$here" | cksum | cut -d ' ' -f 1)
    if is_ready "$venv"; then
        printf '%s\n' "$venv"
        exit 0
    fi
fi

# Find a Python of a supported version with the modules that some systems package separately.
probe='import sys, sqlite3, ssl, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))'
python=
for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c "$probe" >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    say "Mneme needs Python 3.11, 3.12, 3.13 or 3.14 with its venv module (Debian, Ubuntu: apt install python3-venv), but the PATH"
    say "has none. Install it, or give its path: make PYTHON=/path/to/python3 run"
    exit 1
fi

say "Setting up $venv with $("$python" -V), once; this takes a minute or two ..."
mkdir -p "$(dirname "$venv")"
rm -f "$venv/ready"
# An environment that works is updated; otherwise a new one is created.
if ! "$venv/bin/python" -c "import sys, pip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))" 2>/dev/null; then
    "$python" -m venv --clear "$venv" >&2
fi
if ! "$venv/bin/python" -m pip install -qq --no-input --disable-pip-version-check --root-user-action ignore \
    --editable "$here$extras" --constraint constraints.txt >&2; then
    say "The packages could not be installed; the lines above say why. Fix that, and run the same command again."
    exit 1
fi
printf '%s' "$here $wanted $extras" >"$venv/ready"
printf '%s\n' "$venv"

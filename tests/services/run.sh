#!/bin/sh
# Runs the suite over the doubles of all services, then over the real engines that setup.sh has made: libraries
# by the interpreter that has them, all else by the one on the PATH. Then the vendors' clients check the doubles. What is not there
# is named, and skipped; one that fails holds up none of the others.
set -u
cd "$(dirname "$0")/../.."
root=${MNEME_SERVICES:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/mneme-services}
failed=0

tested() {
    echo "$1:"
    shift
    "$@" || failed=1
}

tested "doubles of all services" python -m pytest -q -n 2 -m services tests/services
if [ -f "$root/mem0/ready" ]; then
    tested "mem0's library" env PYTHONPATH="$PWD" "$root/mem0/bin/python" -m pytest -q -n 0 -k mem0 -rs --timeout 1200 tests/services/engines
else
    echo "mem0 is not in $root, so its library is not tested"
fi
if [ -f "$root/libraries/ready" ]; then
    tested "LangGraph's stores and Graphiti" env PYTHONPATH="$PWD" "$root/libraries/bin/python" -m pytest -q -n 2 -k "langchain or graphiti" -rs --timeout 1200 \
        tests/services/test_conformance.py tests/services/test_turn.py tests/services/test_setup.py tests/services/test_wrong_person.py \
        tests/services/test_langchain.py tests/services/test_zep.py tests/services/engines
else
    echo "LangGraph's stores and Graphiti are not in $root, so they are not tested"
fi
tested "the other engines, and the vendors' clients" \
    python -m pytest -q -n 0 -k "not mem0 and not langchain and not graphiti" -rs --timeout 1200 tests/services/engines tests/services/oracles
exit $failed

#!/bin/sh
# Runs the suite over the doubles of all services, then over the real engines that setup.sh has made: mem0 by the
# interpreter that has it, all else by the one on the PATH. Then the vendors' clients check the doubles. What is not there
# is named, and skipped.
set -eu
cd "$(dirname "$0")/../.."
root=${MNEME_SERVICES:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/mneme-services}
python=$root/mem0/bin/python
python -m pytest -q -n 2 -m services tests/services
if [ -f "$root/mem0/ready" ]; then
    PYTHONPATH=$PWD "$python" -m pytest -q -n 0 -k mem0 -rs --timeout 300 tests/services/engines
else
    echo "mem0 is not in $root, so its library is not tested"
fi
python -m pytest -q -n 0 -k "not mem0" -rs --timeout 300 tests/services/engines tests/services/oracles

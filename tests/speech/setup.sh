#!/bin/sh
# Installs espeak-ng if there is none and this may be done here, and pocketsphinx into a folder of its own outside of the
# repository, whose name it prints. The tests say so if something is still missing.
set -u
root=${MNEME_SPEECH:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/mneme-speech}
wanted=pocketsphinx==5.1.1
if ! command -v espeak-ng >/dev/null; then
    as_root=
    [ "$(id -u)" = 0 ] || as_root="sudo -n"
    echo "Installing espeak-ng ..." >&2
    { $as_root apt-get update -q &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends espeak-ng; } >/dev/null 2>&1 ||
        echo "espeak-ng couldn't be installed. On Debian: sudo apt-get install espeak-ng" >&2
fi
if [ "$(cat "$root/ready" 2>/dev/null)" != "$wanted" ]; then
    echo "Installing pocketsphinx ..." >&2
    mkdir -p "$root"
    { "${PYTHON:-python3}" -m venv "$root" &&
        "$root/bin/python" -m pip install -q --no-input --disable-pip-version-check "$wanted" &&
        printf '%s' "$wanted" >"$root/ready"; } >"$root/log" 2>&1 ||
        echo "pocketsphinx couldn't be installed; $root/log says why." >&2
fi
printf '%s\n' "$root"

#!/bin/sh
# Installs Chromium if there is none and this may be done here. The tests say so if it's still missing.
set -u
if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing Chromium ..." >&2
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q chromium; } >/dev/null 2>&1 ||
        echo "Chromium couldn't be installed." >&2
else
    echo "There is no Chromium here. On Debian: sudo apt-get install chromium" >&2
fi

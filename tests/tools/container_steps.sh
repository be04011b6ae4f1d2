#!/bin/sh
# Runs the steps of the Dockerfile where no container engine is: in a chroot with a read-only root, as a user without rights.
# Needs Linux, root, and a Python of the version in the Dockerfile: PYTHON=python3.13 sh tests/tools/container_steps.sh
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d /var/tmp/mneme-container.XXXXXX)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir "$work/root" "$work/data" "$work/source"
chown 10001:10001 "$work/data"
cp -R requirements.lock pyproject.toml README.md LICENSE LICENSE-OpenCC config core adapters gateway "$work/source"
python=${PYTHON:-python3.13}
"$python" -m venv --copies "$work/venv"
(
    cd "$work/source"
    "$work/venv/bin/pip" install -q --no-cache-dir --require-hashes -r requirements.lock
    "$work/venv/bin/pip" install -q --no-cache-dir --no-deps .
)
base=$("$python" -c "import sys; print(sys.base_prefix)")

cat >"$work/chroot.sh" <<'END'
root=$1/root
mount --make-rprivate /
mount --rbind / "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs tmpfs "$root/tmp"
chmod 1777 "$root/tmp"
mount --bind "$1/data" "$root$1/data"
# A Python below /root can't be read by others.
case $2 in /root/*)
    mount -t tmpfs tmpfs "$root/root"
    mkdir -p "$root$2"
    mount --bind "$2" "$root$2"
    mount -o remount,bind,ro "$root$2"
    ;;
esac
mount -t proc proc "$root/proc"
exec chroot "$root" setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    env -i PATH="$1/venv/bin:/usr/bin:/bin" MNEME_HOME="$1/data/home" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 LANG=C.UTF-8 \
    TELEGRAM_BOT_TOKEN=1:none MNEME_TELEGRAM_API_URL=http://127.0.0.1:9 sh -eu "$1/steps.sh"
END

# The same as the workflow in .github/ runs in the image.
cat >"$work/steps.sh" <<'END'
cd /
if touch /etc/mneme 2>/tmp/refusal; then echo "the root isn't read-only" && exit 1; fi
mneme --version
echo "My sister Ana lives in Porto." | mneme chat
mneme recall Porto | grep Ana
if mneme status --alive; then echo "nothing runs yet" && exit 1; fi
mneme run >/tmp/run.log 2>&1 &
tries=0
until mneme status --alive; do
    tries=$((tries + 1))
    [ $tries -lt 30 ] || { cat /tmp/run.log; exit 1; }
    sleep 2
done
mneme backup "${MNEME_HOME%/home}/backups"
kill -TERM $!
wait $!
grep "Mneme has stopped" /tmp/run.log
echo "The steps of the Dockerfile work."
END

unshare --mount --pid --fork sh "$work/chroot.sh" "$work" "$base"

#!/usr/bin/env bash
# The README's first commands on a machine that was installed a moment ago: a Debian in a folder, made by debootstrap,
# with the files that are committed here, as a user without rights. Serves, asks for a score, checks the golden cases,
# sees training refused where GPflow does not run, and runs the tests.
#   tests/campaigns/new_machine.sh [SUITE [FOLDER]]    trixie (the default) has Python 3.13, sid has 3.14
# Needs root. The folder is a temporary one unless named; a named one is kept, and its Debian used again.
# pip's settings and the certificates are those of this machine.
set -euo pipefail
suite=${1:-trixie}
repository=$(cd "$(dirname "$0")/../.." && pwd)
if [[ -n ${2:-} ]]; then
  tree=$2
else
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' EXIT
  chmod 755 "$tree"  # mktemp's folder is closed to the user inside
fi
if [[ ! -e $tree/etc/debian_version ]]; then
  debootstrap --variant=minbase --include=ca-certificates,curl,git,make,python3,python3-venv "$suite" "$tree" >/dev/null
fi

home=/home/somebody
chroot "$tree" useradd --create-home --home-dir "$home" somebody 2>/dev/null || true
rm -rf "${tree:?}$home/normalcy"
mkdir "$tree$home/normalcy"
git -C "$repository" archive HEAD | tar -x -C "$tree$home/normalcy"
chroot "$tree" chown -R somebody: "$home"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  [[ ! -e $file ]] || cp -L "$file" "$tree$file"
done

cat >"$tree/first-commands" <<'INSIDE'
set -euo pipefail
set -m  # so that `kill %1` reaches the service, not make alone
cd ~/normalcy
python3 --version
make serve &
url=http://127.0.0.1:$NORMALCY_PORT
for _ in $(seq 900); do
  curl --silent --output /dev/null "$url/health/ready" && break
  kill -0 %1  # ends here if the service did
  sleep 1
done
curl --silent --show-error --fail -X POST "$url/v1/sites/SoV/score" -H 'Content-Type: application/json' \
  -d '{"age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84, "diameter_mm": 41}' \
  | python3 -c 'import json, sys; print("E[NS] =", json.load(sys.stdin)["score"]["expected_ns"])'
kill %1
wait %1 || true
.venv/serve/bin/python -c 'import numpy; print("NumPy", numpy.__version__)'
.venv/serve/bin/normalcy models verify
if requirements/find-python.sh train 2>/dev/null; then
  make train-env
elif make train-env; then
  echo "make train-env must refuse here." >&2
  exit 1
fi
make test
INSIDE

# Mounts and processes end with the last command.
export tree home
mapfile -t passed_on < <(env | grep -Ei '^(PIP_CERT|PIP_INDEX_URL|PIP_TRUSTED_HOST|SSL_CERT_FILE|https?_proxy|no_proxy)=' || true)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
unshare --mount --pid --fork bash -c '
  mount --rbind /dev "$tree/dev"
  mount -t proc proc "$tree/proc"
  exec chroot --userspec=somebody: "$tree" env --ignore-environment "$@"' bash \
  "${passed_on[@]}" PATH=/usr/bin:/bin HOME="$home" LANG=C.UTF-8 NORMALCY_PORT="$port" bash /first-commands

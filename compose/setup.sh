#!/usr/bin/env bash
# Makes the environment in $1 from the locked requirements in $2, with lockhavoc itself in it, and
# puts the servers of the process runtime where they are found.  Safe to run again.
set -euo pipefail
venv=$1 requirements=$2
say() { printf '%s\n' "setup: $*" >&2; }

find_python() {
  local name
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$name" >/dev/null &&
      "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  say "needs Python 3.11 or newer; found: $(python3 --version 2>&1 || echo none)"
  say "fix: apt-get install python3 python3-venv"
  exit 1
}

make_venv() {
  "$1" -m venv "$venv" >/dev/null 2>&1 && return
  rm -rf "$venv"
  # Debian and Ubuntu split ensurepip off.
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing python3-venv"
    apt-get -o DPkg::Lock::Timeout=300 -qq update >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq install -y \
      python3-venv >/dev/null
    "$1" -m venv "$venv" && return
  fi
  say "cannot make an environment with $1; fix: apt-get install python3-venv"
  exit 1
}

if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  rm -rf "$venv"
  python=$(find_python)
  say "making $venv with $("$python" --version)"
  make_venv "$python"
fi
say "installing $requirements"
"$venv/bin/python" -m pip --disable-pip-version-check install -q --require-hashes -r "$requirements"
# The build backend comes from the same locked file set, so nothing unpinned is fetched.
"$venv/bin/python" -m pip --disable-pip-version-check install -q --require-hashes \
  -r requirements/build.txt
"$venv/bin/python" -m pip --disable-pip-version-check install -q --no-deps \
  --no-build-isolation --editable .
say "servers of the process runtime"
"$venv/bin/python" -m compose.servers

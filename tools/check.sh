#!/usr/bin/env bash
# Every check that needs no running program. All of them run, so that one look shows all complaints.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
check() {
  local name=$1
  shift
  "$@" || failed+=("$name")
}

check format tools/format.sh
check layers .venv/bin/python tools/check_layers.py
check files .venv/bin/python tools/check_files.py
check isolation .venv/bin/python tools/check_isolation.py
check headers .venv/bin/python tools/check_headers.py
check clang-tidy .venv/bin/python tools/check_tidy.py

if [ ${#failed[@]} -gt 0 ]; then
  echo "check: failed: ${failed[*]}" >&2
  exit 1
fi
echo "check: ok"

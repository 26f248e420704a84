#!/usr/bin/env bash
# Every check that needs no running program. All of them run, so that one look shows all complaints.
#
#   tools/check.sh [quick]     quick: without those that compile
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
check python .venv/bin/ruff check --quiet .
check types .venv/bin/python tools/check_types.py
if [ "${1:-}" = quick ]; then
  check_slowly() { :; }
else
  check_slowly() { check "$@"; }
fi
check_slowly headers .venv/bin/python tools/check_headers.py
check_slowly clang-tidy .venv/bin/python tools/check_tidy.py

if [ ${#failed[@]} -gt 0 ]; then
  echo "check: failed: ${failed[*]}" >&2
  exit 1
fi
echo "check: ok"

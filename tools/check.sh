#!/usr/bin/env bash
# Every check that needs no running program. All of them run, so that one look shows all complaints.
#
#   tools/check.sh [quick|slow]     quick: without those that compile; slow: those alone
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
check() {
  local name=$1
  shift
  "$@" || failed+=("$name")
}

if [ "${1:-}" != slow ]; then
  check format tools/format.sh
  check layers .venv/bin/python tools/check_layers.py
  check names .venv/bin/python tools/check_names.py
  check files .venv/bin/python tools/check_files.py
  check isolation .venv/bin/python tools/check_isolation.py
  check parts .venv/bin/python tools/check_parts.py full build/lib/liboar.so
  check python .venv/bin/ruff check --quiet .
  check mypy .venv/bin/mypy
  check types .venv/bin/python tools/check_types.py
  check spelling tools/check_spelling.sh
  check manifests .venv/bin/kubernetes-validate --strict --quiet examples/distributed/kubernetes.yaml
fi
if [ "${1:-}" != quick ]; then
  check headers .venv/bin/python tools/check_headers.py
  check clang-tidy .venv/bin/python tools/check_tidy.py
fi

if [ ${#failed[@]} -gt 0 ]; then
  echo "check: failed: ${failed[*]}" >&2
  exit 1
fi
echo "check: ok"

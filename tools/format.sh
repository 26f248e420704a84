#!/usr/bin/env bash
# Checks the format of the C++ sources, or with --fix puts it right.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(
  git ls-files --cached --others --exclude-standard -- '*.cpp' '*.h' |
    while read -r file; do [ -f "$file" ] && echo "$file"; done
)
[ ${#files[@]} -gt 0 ] || exit 0

if [ "${1:-}" = --fix ]; then
  .venv/bin/clang-format -i "${files[@]}"
  echo "format: done (${#files[@]} files)"
elif .venv/bin/clang-format --dry-run -Werror "${files[@]}"; then
  echo "format: ok (${#files[@]} files)"
else
  echo "format: failed; 'make format' puts it right" >&2
  exit 1
fi

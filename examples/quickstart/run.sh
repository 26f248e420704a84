#!/usr/bin/env bash
# Trains the digit reader in Python, then reads the same digits in C++ and compares.
#
#   examples/quickstart/run.sh [options of train.py]
#
# Uses the build in build/ (OAR_BUILD), its Python (PYTHON), and writes to build/quickstart (OUT).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${OAR_BUILD:-$root/build}
out=${OUT:-$build/quickstart}
python=${PYTHON:-$root/.venv/bin/python}
[ -x "$python" ] || python=python3

if [ -d "$build/python" ]; then
  export PYTHONPATH="$build/python${PYTHONPATH:+:$PYTHONPATH}"
fi
mkdir -p "$out"

# The compiler works on the C++ program while Python trains.
log=$out/cpp/build.log
mkdir -p "$out/cpp"
{ cmake -S "$here" -B "$out/cpp" -DOar_DIR="$build" && cmake --build "$out/cpp"; } >"$log" 2>&1 &
compiler=$!
trap 'kill "$compiler" 2>/dev/null || true' EXIT

echo "── Train in Python ──"
"$python" "$here/train.py" --out "$out" "$@"

echo
echo "── Predict in C++ ──"
if ! wait "$compiler"; then
  tail -n 30 "$log" >&2
  echo "The C++ program could not be built; all messages are in $log." >&2
  exit 1
fi
trap - EXIT
"$out/cpp/predict" "$out/digits.safetensors" "$out/digits_test.safetensors"

relative=${out#"$PWD"/}
echo
echo "Next:"
echo "  look at   $relative/quickstart.svg"
echo "  change    ${here#"$PWD"/}/train.py: DigitNet is the network, train() the loop"
echo "  try       ${here#"$PWD"/}/run.sh --epochs 3    or    --lr 0.02    (--help lists the rest)"
echo "  run       a Paddle program of yours: python -m oar.as_paddle your_script.py"

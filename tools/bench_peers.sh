#!/usr/bin/env bash
# The peers of the benchmarks, the newest release of each, in environments that nothing else uses.
#
#   tools/bench_peers.sh FOLDER
set -euo pipefail

folder=${1:?usage: tools/bench_peers.sh FOLDER}
python=${OAR_PYTHON:-python3}
mkdir -p "$folder"
.venv/bin/python -m pip install --quiet --disable-pip-version-check matplotlib # for the plots of the report
for peer in "torch:torch torchvision pillow" "paddle:paddlepaddle pillow opencv-python-headless" "onnxruntime:onnxruntime openvino"; do
  name=${peer%%:*} packages=${peer##*:}
  [ -x "$folder/$name/bin/python" ] || "$python" -m venv "$folder/$name"
  echo "Installing $packages into $folder/$name"
  "$folder/$name/bin/python" -m pip install --quiet --upgrade pip
  "$folder/$name/bin/python" -m pip install --upgrade numpy setuptools $packages | grep -v "already satisfied" || true
  (cd / && "$OLDPWD/$folder/$name/bin/python" -c "import $name; print('$name', $name.__version__)")
done

#!/usr/bin/env bash
# What the comparisons of trained networks need: the frameworks that are in no benchmark, and the networks, about 900 MB.
#
#   tools/model_peers.sh ENVIRONMENT MODELS
set -euo pipefail

environment=${1:?usage: tools/model_peers.sh ENVIRONMENT MODELS}
models=${2:?usage: tools/model_peers.sh ENVIRONMENT MODELS}
python=${OAR_PYTHON:-python3}
packages=("numpy" "pytest" "opencv-python-headless<5" ai-edge-litert gguf safetensors onnx onnxruntime tensorflow-cpu tf_keras)
if [ "$(cat "$environment/installed" 2>/dev/null || true)" != "${packages[*]}" ]; then
  echo "Installing ${packages[*]} into $environment"
  mkdir -p "$(dirname "$environment")"
  "$python" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
  echo "${packages[*]}" >"$environment/installed"
fi
"$python" tests/python/peers/real_models.py "$models"

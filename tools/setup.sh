#!/usr/bin/env bash
# Installs what a build (or another purpose) needs and is missing, and keeps .venv up to date.
# With everything in place it takes a fraction of a second.
#
#   tools/setup.sh [build|run|check|wheel|aarch64|wasm|browser]     run: a build without tests; aarch64, wasm: cross builds
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-build}
python=${OAR_PYTHON:-python3}

# ---- System packages ---------------------------------------------------------------------------

requirements=()
case $purpose in
  build | run)
    packages=(g++ cmake ninja-build ccache mold libfmt-dev libcli11-dev libgtest-dev
      libopenblas0-openmp libjpeg62-turbo-dev libpng-dev libgloo-dev libopenmpi-dev openmpi-bin)
    # A Python of the user's own brings headers and venv; the distribution's has them in packages.
    case $(command -v "$python" || true) in
      "" | /usr/bin/* | /bin/*) packages+=(python3 python3-dev python3-venv) ;;
    esac
    requirements=(run)
    if [ "$purpose" = build ]; then
      requirements+=(build)
      packages+=(llvm-19-dev clang-19) # the code generator
      packages+=(libgrpc++-dev protobuf-compiler-grpc librocksdb-dev) # parameter servers
    fi
    ;;
  check)
    packages=()
    requirements=(check)
    ;;
  wheel)
    packages=()
    requirements=(wheel)
    ;;
  aarch64)
    packages=(g++-aarch64-linux-gnu qemu-user cmake ninja-build ccache libfmt-dev)
    requirements=(run)
    ;;
  wasm)
    packages=(emscripten nodejs cmake ninja-build libfmt-dev)
    requirements=(run)
    ;;
  browser)
    packages=(chromium chromium-driver fonts-dejavu-core)
    ;;
  *)
    echo "setup.sh: '$purpose' is not one of build, run, check, wheel, aarch64, wasm, browser" >&2
    exit 2
    ;;
esac

installed() {
  [ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" = "install ok installed" ]
}

say_by_hand() {
  {
    echo "Oar needs packages that are not installed, and $1."
    echo "Please install them, then run make again:"
    echo
    echo "    apt-get install ${missing[*]}"
    echo
  } >&2
  exit 1
}

missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${packages[@]}"; do
    installed "$package" || missing+=("$package")
  done
else
  # Not Debian: the names of packages differ, so look for what they bring.
  for tool in g++ cmake ninja "$python"; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    echo "Oar needs these commands: ${missing[*]}. On Debian they come from: ${packages[*]}." >&2
    exit 1
  fi
fi

install_missing() {
  command -v apt-get >/dev/null || say_by_hand "there is no apt-get here"
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || say_by_hand "only root can (there is no sudo here)"
    as_root=(sudo)
  fi
  echo "Installing ${missing[*]}"
  # Another installation may be running, perhaps one of the system's own: wait for it.
  wait_for_lock=(-o DPkg::Lock::Timeout=300)
  install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get "${wait_for_lock[@]}" install -y -q --no-install-recommends "${missing[@]}")
  # The lists of a fresh machine are empty or old; refreshing them costs time, so only then.
  if ! "${install[@]}" >/dev/null 2>&1; then
    "${as_root[@]}" apt-get "${wait_for_lock[@]}" update -q || say_by_hand "apt-get update failed"
    "${install[@]}" || say_by_hand "apt-get install failed"
  fi
}

# ---- The Python environment --------------------------------------------------------------------

make_environment() {
  version=$("$python" -c 'import sys; print(sys.version.split()[0], sys.base_prefix)')
  if [ "$(cat .venv/oar-python 2>/dev/null || true)" != "$version" ]; then
    echo "Creating .venv with Python ${version%% *}"
    "$python" -m venv --clear .venv
    echo "$version" >.venv/oar-python
  fi

  for part in "${requirements[@]}"; do
    file=tools/requirements-$part.txt
    stamp=.venv/oar-$part
    if ! cmp -s "$file" "$stamp"; then
      echo "Installing the Python packages of $file"
      .venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$file"
      cp "$file" "$stamp"
    fi
  done
}

# Both wait for downloads, so they run at the same time, unless the environment needs a package of the first.
if [ ${#missing[@]} -eq 0 ]; then
  make_environment
elif [[ " ${missing[*]} " == *" python3"* ]]; then
  install_missing
  make_environment
else
  install_missing &
  make_environment
  wait $!
fi

#!/usr/bin/env bash
# Installs a wheel in a new environment and uses it there: from Python, as a command, and from a C++
# program. The first two run in a root folder of their own that holds Python and the libraries of
# every Linux machine, and nothing that was installed to build Oar.
#
#   tests/wheel/test_wheel.sh <wheel>
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wheel=$(realpath "$1")
python=${OAR_PYTHON:-python3}
unset LD_LIBRARY_PATH PYTHONPATH PYTHONHOME
PATH=$PATH:/usr/sbin:/sbin # ldconfig and chroot

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" "$here/check_needed.py" "$wheel"

"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
cp "$here/smoke.py" "$work/venv/"

# ---- A root folder with Python and the baseline libraries ---------------------------------------

root=$work/root
mkdir -p "$root"/{etc,proc,dev,tmp,usr/bin,usr/lib} "$root$work"
touch "$root/dev/null"

copy() { # keeps the path, follows links
  mkdir -p "$root$(dirname "$1")"
  [ -e "$root$1" ] || cp -L "$1" "$root$1"
}

read -r prefix stdlib executable < <("$python" -c '
import os, sys, sysconfig
exe = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
print(sys.base_prefix, sysconfig.get_paths()["stdlib"], exe)')

# Its own modules may use libraries of the distribution; those come along with it.
{
  ldd "$executable" "$stdlib"/lib-dynload/*.so 2>/dev/null
  for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libgcc_s.so.1 libstdc++.so.6; do
    ldconfig -p | awk -v name="$name" '$1 == name && /x86-64|AArch64/'
  done
} | grep -oE '(=> )?/[^ ]+' | sed 's/^=> //' | sort -u | while read -r library; do
  case $library in
    "$prefix"/lib*/python* | *:) ;; # below, or the heading of a file
    *) [ ! -f "$library" ] || copy "$library" ;;
  esac
done
for loader in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do
  [ ! -e "$loader" ] || copy "$loader"
done
# Without a cache the loader searches its default folders, which are the ones that were copied.
copy "$executable"

mkdir -p "$root$stdlib" "$root$prefix/bin" "$root$work/venv"
if [ -n "$(find "$root" -name 'libgomp*')" ]; then
  echo "test_wheel.sh: Python itself brings a library that the wheel should" >&2
  exit 1
fi
cat >"$work/inside.sh" <<'INSIDE'
set -euo pipefail
mount --bind "$stdlib" "$root$stdlib"
mount --bind "$work/venv" "$root$work/venv"
mount --rbind /proc "$root/proc" # the loader asks it where a program lies
run() { env -i PATH=/usr/bin HOME=/tmp LANG=C.UTF-8 "$(command -v chroot)" "$root" "$@"; }
run "$work/venv/bin/python" -I "$work/venv/smoke.py"
run "$work/venv/bin/oar" --version
INSIDE

export root work stdlib
# The environment's python is a link to the interpreter by a name that the root must have too.
link=$(readlink -f "$work/venv/bin/python")
copy "$link"
next=$work/venv/bin/python
while [ -L "$next" ]; do
  target=$(readlink "$next")
  case $target in /*) ;; *) target=$(dirname "$next")/$target ;; esac
  case $target in "$work"/*) ;; *) copy "$target" ;; esac
  next=$target
done

namespace=(unshare --mount)
[ "$(id -u)" -eq 0 ] || namespace=(unshare --map-root-user --mount)
if "${namespace[@]}" true 2>/dev/null; then
  "${namespace[@]}" bash "$work/inside.sh"
  echo "clean root: ok"
else
  echo "clean root: not possible here (no mount namespaces); running beside the system's libraries"
  env -i PATH=/usr/bin HOME="$work" "$work/venv/bin/python" -I "$work/venv/smoke.py"
  env -i PATH=/usr/bin HOME="$work" "$work/venv/bin/oar" --version
fi

# ---- A C++ program that links the wheel's library ------------------------------------------------

site=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["platlib"])')
cmake -S "$here/consumer" -B "$work/consumer" -DOar_DIR="$site/oar/lib/cmake/Oar" \
  -DCMAKE_BUILD_TYPE=Release >"$work/consumer.log" 2>&1 &&
  cmake --build "$work/consumer" >>"$work/consumer.log" 2>&1 || {
  cat "$work/consumer.log" >&2
  exit 1
}
"$work/consumer/consumer"
echo "C++ program against the wheel: ok"

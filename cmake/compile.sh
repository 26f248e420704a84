#!/bin/sh
# Runs a compiler through ccache: compile.sh <ccache> <compiler> <argument>...
#
# A precompiled header is never taken from the cache: an old one that differs in comments alone has other sizes of files in it,
# and GCC would read those files again. Files that use it are taken from the cache if everything that went into the header is
# the same: its digest is in a file beside it, which ccache reads.
set -eu
ccache=$1
shift
case " $* " in
  *" -x c++-header "*) ;;
  *)
    # By the list of included files that the compiler writes anyway (-fpch-deps adds those of the precompiled header): to preprocess
    # each file first would add a tenth to the time of a build. Paths are relative to the checkout, so that checkouts share objects.
    export CCACHE_DEPEND=1 CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros
    root=${0%/cmake/compile.sh}
    CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} exec "$ccache" "$@"
    ;;
esac

"$@"
output='' depends='' before=''
for argument in "$@"; do
  case $before in
    -o) output=$argument ;;
    -MF) depends=$argument ;;
  esac
  before=$argument
done
{
  "$1" --version
  for argument in "$@"; do
    case $argument in
      */*) ;; # a path: what is there, is read below
      *) printf '%s\n' "$argument" ;;
    esac
  done
  # A rule for make: the target and a colon, then the files, spaces in their names and ends of lines behind backslashes.
  sed -e '1s/^[^:]*://' -e 's/ *\\$//' "$depends" | xargs cat
} | sha256sum > "$output.sum"

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
  *) CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 exec "$ccache" "$@" ;;
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

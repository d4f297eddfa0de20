# shellcheck shell=sh
# Lets end_tree "$1" "$2" fork, for programs that run as root. A shell that cannot fork exits: then all goes without; bash
# would try again for long.
# shellcheck disable=SC2154
if [ ! "$BASH_VERSION" ]; then
  trap 'trap - EXIT; _cs_quick="" _cs_all=""; end_tree "$1" "$2"; exit' EXIT
  case $(grep -V) in *GNU*) _cs_quick=1 ;; esac
fi

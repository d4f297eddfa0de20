# shellcheck shell=sh
# program: writes its input to a file, with the directories above it, for wires with streams of their own. $1 its path,
# "~" is the home; $2 how many bytes come: their end need not be told otherwise. A file that is there keeps its mode
# and its links.
#
# One word is printed: "whole", or "nodir" when it cannot be written there, "short" when
# less came, and "unstored" when there is no room.
exec 2>/dev/null
say() {
  echo "$1"
  exit
}
# What comes is read in any case: some engines lose what was printed when it is not.
refuse() {
  [ "$2" = 0 ] || head -c "$2" >/dev/null
  say "$1"
}
_cs_v=$1
case $_cs_v in \~ | \~/*) _cs_v=$HOME${_cs_v#?} ;; esac
case $_cs_v in /*) ;; *) _cs_v=./$_cs_v ;; esac
if [ -d "$_cs_v" ] || ! mkdir -p -- "${_cs_v%/*}/" || { [ -e "$_cs_v" ] && [ ! -f "$_cs_v" ]; }; then refuse nodir "$2"; fi
if ! true >>"$_cs_v"; then refuse nodir "$2"; fi
_cs_e=whole
if [ "$2" = 0 ]; then
  : >"$_cs_v" || _cs_e=unstored
else
  head -c "$2" >"$_cs_v" || _cs_e=unstored
fi
[ $_cs_e != whole ] || [ $(($(wc -c <"$_cs_v"))) = "$2" ] || _cs_e=short
say $_cs_e

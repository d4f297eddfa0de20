# shellcheck shell=sh
# program: prints a file, for wires with streams of their own. $1 its path, "~" is the home; $2 most bytes.
#
# On the other output comes one word: "whole" behind it, or else "absent", "nodir" (no regular file, or it may not be
# read) or "large", and nothing of the file.
exec 3>&2 2>/dev/null
say() {
  echo "$1" >&3
  exit
}
_cs_v=$1
case $_cs_v in \~ | \~/*) _cs_v=$HOME${_cs_v#?} ;; esac
case $_cs_v in /*) ;; *) _cs_v=./$_cs_v ;; esac
if [ ! -e "$_cs_v" ]; then
  # One below a file is not missing but wrong.
  _cs_d=$_cs_v
  while [ "$_cs_d" ] && [ ! -e "$_cs_d" ]; do _cs_d=${_cs_d%/*}; done
  [ ! "$_cs_d" ] || [ -d "$_cs_d" ] || say nodir
  say absent
fi
[ -f "$_cs_v" ] || say nodir
if ! true <"$_cs_v"; then say nodir; fi
# A file of the kernel says that it is empty.
[ ! -s "$_cs_v" ] || [ $(($(wc -c <"$_cs_v"))) -le "$2" ] || say large
if head -c "$(($2 + 1))" <"$_cs_v"; then say whole; fi
say nodir

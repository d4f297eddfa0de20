# shellcheck shell=sh
# program: puts what store.sh has stored as "input" where it belongs, with the directories above it. $1 tag, $2
# the path in base64. A file that is there keeps its mode and its links.
# include prologue.sh
# include path.sh
path "$2"
try has input || tell unstored
_cs_e=ran
if [ -d "$_cs_v" ] || ! mkdir -p -- "${_cs_v%/*}/"; then
  _cs_e=nodir
elif ! cat <"$_cs_h.input" >"$_cs_v"; then
  _cs_e=nodir
  [ ! -w "$_cs_v" ] || _cs_e=unstored
fi
rm -f "$_cs_h.input"
tell $_cs_e

# shellcheck shell=sh
# program: what a command has printed so far, from two offsets on.
#
# $1 tag, $2 $3 offsets, $4 most bytes of each, $5 1: the command is over. Else it waits a moment when there is
# nothing yet.
# include prologue.sh
# include report.sh
try is_there || tell absent
_cs_n=0
while
  _cs_a=$(size "$_cs_h/out")
  _cs_b=$(size "$_cs_h/err")
  [ "$5" = 0 ] && [ $_cs_n -lt 40 ] && [ "$_cs_a" -le "$2" ] && [ "$_cs_b" -le "$3" ] && is_there &&
    [ ! -s "$_cs_h/end" ]
do
  _cs_n=$((_cs_n + 1))
  sleep 0.025
done
_cs_x=$((_cs_a - $2))
[ $_cs_x -le "$4" ] || _cs_x=$4
_cs_y=$((_cs_b - $3))
[ $_cs_y -le "$4" ] || _cs_y=$4
printf '\n%s\n' "$_cs_tag ran 0 0 $_cs_a $_cs_b 0 0 0"
part "$_cs_h/out" "$2" "$_cs_x"
echo
part "$_cs_h/err" "$3" "$_cs_y"
echo
echo "$_cs_tag end"

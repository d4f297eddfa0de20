# shellcheck shell=sh
# program: stores a piece of a command's text or input, for wires whose lines have a limit.
#
# $1 tag, $2 the piece in base64, $3 text, input or env, $4 where the piece begins. It lies beside the folder, where
# run.sh finds it. A piece that comes twice is there once.
# include prologue.sh
# include report.sh
begin() { true >"$_cs_h.$1" && [ -e "$_cs_h.$1" ]; }
if [ "$4" = 0 ]; then try begin "$3"; else try has "$3"; fi || tell unstored
[ "$(size "$_cs_h.$3")" -le "$4" ] || dd if=/dev/null of="$_cs_h.$3" bs=1 seek="$4"
[ "$(size "$_cs_h.$3")" = "$4" ] || tell unstored
printf %s "$2" | base64 -d >>"$_cs_h.$3" || tell unstored
tell ran

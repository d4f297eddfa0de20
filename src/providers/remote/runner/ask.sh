# shellcheck shell=sh
# program: the report of a command, once more.
#
# $1 tag, $2 head, $3 tail. Waits up to five seconds for it, as long as the program that runs the command
# lives. In its place there may be: absent, nothing of it is there; going, it runs still; ended, the program
# that ran it was killed.
# include prologue.sh
# include report.sh
try is_there || tell absent
_cs_n=0
_cs_p=''
until [ -s "$_cs_h/end" ] || [ $_cs_n = 100 ]; do
  is_there || tell absent
  if [ "$_cs_p" ]; then kill -0 "$_cs_p" || break; else read -r _cs_p <"$_cs_h/pid"; fi
  _cs_n=$((_cs_n + 1))
  sleep 0.05
done
if read -r _cs_v <"$_cs_h/end"; then
  # shellcheck disable=SC2086
  report "$2" "$3" $_cs_v
elif kill -0 "$_cs_p"; then
  tell going
else
  tell ended
fi

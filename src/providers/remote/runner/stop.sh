# shellcheck shell=sh
# program: ends a command that run.sh runs. $1 tag.
#
# The file comes first: a command that has not begun will see it, and not begin. It lies beside the folder, or
# where that would be. The report says whether nothing was left.
# include prologue.sh
# include tree.sh
lay_stop() { true >"$_cs_h.stop" && [ -e "$_cs_h.stop" ]; }
if try is_there; then lay_stop; else try lay_stop; fi
_cs_k=0
while
  _cs_v=''
  read -r _cs_v <"$_cs_h/root"
  end_tree "CLOUDSANDBOX_RUN=$_cs_tag" "$_cs_v"
  _cs_e=$?
  [ -d "$_cs_h" ] && [ ! -s "$_cs_h/end" ] && [ $_cs_k -lt 100 ]
do
  _cs_k=$((_cs_k + 1))
  sleep 0.02
done
tell stopped $((_cs_e == 0))

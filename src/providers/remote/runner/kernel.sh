# shellcheck shell=sh
# program: ends a kernel of a Jupyter server with all that its code has started: 0 when nothing is left, 3 when there is
# no such kernel. $1 its id.
#
# The server names a kernel's file in its arguments, and gives it a variable of its own, which its processes have, too. The
# kernel is the first process with that name: its code may start others with it.
exec 2>/dev/null
# include tree.sh
_cs_k='' _cs_n=''
# shellcheck disable=SC2013
for _cs_f in $(grep -lsF -- "kernel-$1.json" /proc/[0-9]*/cmdline); do
  _cs_p=${_cs_f#/proc/} _cs_p=${_cs_p%/cmdline}
  look || continue
  if [ ! "$_cs_k" ] || [ "$_cs_pt" -lt "$_cs_n" ]; then _cs_k=$_cs_p _cs_n=$_cs_pt; fi
done
[ "$_cs_k" ] || exit 3
set -- "$1" "$_cs_k:$_cs_n"
_cs_v=$(tr '\0' '\n' <"/proc/$_cs_k/environ" | grep '^JPY_SESSION_NAME=.')
set -- "${_cs_v:-kernel-$1.json}" "$2"
# include hasten.sh
end_tree "$1" "$2"
_cs_n=$?
trap - EXIT
exit $_cs_n

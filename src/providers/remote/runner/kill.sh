# shellcheck shell=sh
# program: ends what belongs to a command, for wires that tell the exit code: 0 when nothing is left. $1 its mark,
# NAME=VALUE; $2 its first process, "PID:START", "PID:~SECONDS" or nothing; the others are files to remove, where
# "~" is the home.
exec 2>/dev/null
# include tree.sh
# include hasten.sh
end_tree "$1" "$2"
_cs_n=$?
trap - EXIT
shift 2
for _cs_f; do
  case $_cs_f in \~/*) _cs_f=$HOME${_cs_f#?} ;; esac
  rm -f -- "$_cs_f"
done
exit $_cs_n

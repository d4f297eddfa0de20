# shellcheck shell=sh
# program: ends what belongs to a command, for wires that tell the exit code: 0 when nothing is left. $1 its mark,
# NAME=VALUE; $2 its first process, "PID:START", "PID:~SECONDS" or nothing; the others are files to remove.
exec 2>/dev/null
# include tree.sh
# include hasten.sh
end_tree "$1" "$2"
_cs_n=$?
trap - EXIT
shift 2
[ $# = 0 ] || rm -f -- "$@"
exit $_cs_n

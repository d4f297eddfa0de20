# shellcheck shell=sh
# program: runs a command for wires that stream both outputs, take variables, a directory and a limit in fields of
# their own, and tell the exit code only when nothing holds the outputs any more. So when the command has ended, a
# line is written to both of them: RS, the mark's value, a blank, the exit code, LF. The mark is the variable
# CLOUDSANDBOX_CALL. The code 999: there is no such shell, and nothing ran. What it takes stands in wrapping.sh.
exec 3>&2 2>/dev/null
_cs_plain=
watch() { :; }
ended() { :; }
over() { tell "$1"; }
# include launch.sh
# include wrapping.sh
wrap "$@"

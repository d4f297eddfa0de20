# shellcheck shell=sh
# program: takes folders of commands away. $1 tag of the report, $2... the commands'.
# include prologue.sh
# include forgetting.sh
shift
(forget "$@") >/dev/null &
tell ran

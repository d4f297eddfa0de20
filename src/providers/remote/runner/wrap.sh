# shellcheck shell=sh
# Runs a command for wires that stream both outputs, take variables and a directory in fields of their own, and tell
# the exit code only when nothing holds the outputs any more. So when the command has ended, a line is written to
# both of them: RS, the mark's value, a blank, the exit code, LF. The mark is the variable CLOUDSANDBOX_CALL. The
# code 999: there is no such shell, and nothing ran. The programs say how a command of their kinds is begun (prepare,
# start), and define
#
#   watch       the command is about to be started
#   ended       it has ended; nothing that would hinder this shell may go on
#   over CODE   it had this exit code: calls tell
#
# $1 j for both outputs in one, or nothing
# $2 file with the standard input, - for the one that is here; $3 file with a text that is too long for an argument, or nothing; they are
#    removed here
# $4 names of the variables that came with the call
# $5... shell SHELL TEXT, argv WORD...; or python TEXT, node TEXT
#
# Without SHELL it is a login bash, where there is one; the profile must not change what the call says.
# Messages of this shell are nobody's business; its own failures are exit code 126. Every variable begins with
# _cs_: one that the user has exported under the same name would reach the command with our value.
exec 3>&2 2>/dev/null

clean() {
  PATH=$PATH:/usr/bin:/bin rm -f -- "$@"
}

# tell CODE: the lines.
tell() {
  printf '\036%s %s\n' "$CLOUDSANDBOX_CALL" "$1" >&3
  printf '\036%s %s\n' "$CLOUDSANDBOX_CALL" "$1"
}

wrap() {
  case $2 in
  -) ;;
  *)
    exec <"${2:-/dev/null}" || exit 126
    [ ! "$2" ] || clean "$2"
    ;;
  esac
  _cs_main=''
  prepare "$@"
  [ ! "$3" ] || [ "$_cs_main" = "$3" ] || clean "$3"
  watch
  (
    if [ "$1" ]; then exec 2>&1; else exec 2>&3; fi
    exec 3>&-
    start "$@"
  )
  set -- "$?"
  ended
  [ ! "$_cs_main" ] || clean "$_cs_main"
  over "$1"
  exit "$1"
}

# shellcheck shell=sh
# wrap ...: what wrap.sh and bound.sh do, who define the functions
#
#   watch       the command is about to be started
#   ended       it has ended; nothing that would hinder this shell may go on
#   over CODE   it had this exit code: calls tell
#
# and _cs_plain: a shell that was not asked for by its name is no login shell.
#
# $1 j for both outputs in one, or nothing
# $2 file with the standard input, - for the one that is here; $3 file with a text that is too long for an argument,
#    or nothing; they are removed here
# $4 names of the variables that came with the call
# $5... what launch takes, without FILE: shell SHELL TEXT, python TEXT, node TEXT, argv WORD...
#
# Without SHELL it is a login bash, where there is one; the profile must not change what the call says.
# Messages of this shell are nobody's business; its own failures are exit code 126. Every variable begins with
# _cs_: one that the user has exported under the same name would reach the command with our value.

clean() {
  PATH=$PATH:/usr/bin:/bin rm -f -- "$@"
}

# tell CODE: the lines.
tell() {
  printf '\036%s %s\n' "$CLOUDSANDBOX_CALL" "$1" >&3
  printf '\036%s %s\n' "$CLOUDSANDBOX_CALL" "$1"
}

# become NAMES SHELL TEXT FILE: this process becomes the command of a shell. A login shell would run the
# user's logout file at its exit, and write what that writes; so it is one only until it has the profile.
become() {
  [ ! "$4" ] || set -- "$1" "$2" '. /dev/fd/9'
  if [ "$2$_cs_plain" ] || [ ! "$_cs_bash" ]; then launch shell "$2" "$3"; fi
  # It would be taken for an option.
  case $3 in [-+]*) set -- "$1" "$2" " $3" ;; esac
  for _cs_n in $1; do eval "export _cs_e_$_cs_n=\"\$$_cs_n\""; done
  # shellcheck disable=SC2016
  launch argv "$_cs_bash" -l -c 'for _cs_n in $1; do
    eval "export $_cs_n=\"\$_cs_e_$_cs_n\""
    unset "_cs_e_$_cs_n"
  done
  exec "$0" -c "$2"' "$_cs_bash" "$1" "$3"
}

wrap() {
  case $5$3 in shell?*) exec 9<"$3" || exit 126 ;; esac
  case $2 in
  -) ;;
  *)
    exec <"${2:-/dev/null}" || exit 126
    [ ! "$2" ] || clean "$2"
    ;;
  esac
  _cs_bash='' _cs_main=''
  case $5 in
  shell)
    _cs_bash=$(command -v bash)
    for _cs_f in /usr/local/bin/bash /usr/bin/bash /bin/bash; do
      [ ! -x $_cs_f ] || _cs_bash=$_cs_f
    done
    case $6 in
    '' | sh) _cs_f=. ;;
    bash) _cs_f=$_cs_bash ;;
    *) _cs_f=$(command -v "$6") ;;
    esac
    if [ ! "$_cs_f" ]; then
      clean "$3"
      tell 999
      exit 127
    fi
    ;;
  python) _cs_main=$PWD/.cloudsandbox-$CLOUDSANDBOX_CALL.py ;;
  node) _cs_main=$PWD/.cloudsandbox-$CLOUDSANDBOX_CALL.js ;;
  esac
  # Code is a file beside the user's, whose name nobody knows. Where there can be none, it is the text itself, or
  # the file that it came in.
  if [ "$_cs_main" ]; then
    if [ "$3" ]; then PATH=$PATH:/usr/bin:/bin cat -- "$3" >"$_cs_main"; else printf %s "$6" >"$_cs_main"; fi ||
      { clean "$_cs_main" && _cs_main=$3; }
  fi
  [ ! "$3" ] || [ "$_cs_main" = "$3" ] || clean "$3"
  watch
  (
    if [ "$1" ]; then exec 2>&1; else exec 2>&3; fi
    exec 3>&-
    case $5 in
    shell) become "$4" "$6" "$7" "$3" ;;
    argv)
      shift 5
      launch argv "$@"
      ;;
    *) launch "$5" "$_cs_main" "$6" ;;
    esac
  )
  set -- "$?"
  ended
  [ ! "$_cs_main" ] || clean "$_cs_main"
  over "$1"
  exit "$1"
}

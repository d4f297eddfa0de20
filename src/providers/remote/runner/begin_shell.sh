# shellcheck shell=sh
# How the command line of a shell, or words, is begun.
# include launch_shell.sh

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

prepare() {
  _cs_bash=''
  [ "$5" = shell ] || return
  [ ! "$3" ] || exec 9<"$3" || exit 126
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
}
start() {
  [ "$5" = argv ] || become "$4" "$6" "$7" "$3"
  shift 5
  launch argv "$@"
}

# shellcheck shell=sh
# launch KIND ...: becomes the command, in a session of its own where there is setsid.
#
#   launch shell SHELL TEXT    a command line for SHELL: "bash", "sh", a path, or nothing for bash where there
#                              is one, else sh
#   launch script SHELL        the same, its text in a file on descriptor 9 that begins with "exec 9<&-; "
#   launch argv WORD...
#
# All is looked up in the PATH of the command, except that a shell is found in the usual places without one.
# include session.sh
launch() {
  if [ "$1" = argv ]; then
    shift
    session "$@"
  fi
  case $2 in
  '' | bash)
    _cs_l=bash
    if ! command -v bash >/dev/null 2>&1; then
      [ "$2" ] || _cs_l=/bin/sh
      for _cs_f in /bin/bash /usr/bin/bash /usr/local/bin/bash; do
        [ ! -x $_cs_f ] || _cs_l=$_cs_f
      done
    fi
    ;;
  sh) _cs_l=/bin/sh ;;
  *) _cs_l=$2 ;;
  esac
  [ "$1" = shell ] || session "$_cs_l" -c '. /dev/fd/9'
  # It would be taken for an option.
  case $3 in [-+]*) set -- "$1" "$2" " $3" ;; esac
  session "$_cs_l" -c "$3"
}

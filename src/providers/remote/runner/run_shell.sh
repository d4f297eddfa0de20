# shellcheck shell=sh
# program: runs the command line of a shell; its words stand in run.sh.
# include launch_shell.sh

# check SHELL: one that was asked for is there, or nothing runs.
check() {
  case $1 in
  /*) [ -x "$1" ] || tell noshell ;;
  bash) PATH=$_cs_path:/bin:/usr/bin:/usr/local/bin command -v bash >/dev/null || tell noshell ;;
  esac
}
# prepare KIND SOURCE
prepare() {
  if [ "$2" = @ ]; then
    { printf 'exec 9<&-; ' && take text @; } >"$_cs_h/text"
    return
  fi
  _cs_text=$(take text "$2" && echo .) || return
  _cs_text=${_cs_text%.}
  [ "$_cs_text" ] || _cs_text=' '
}
# start KIND SHELL
start() {
  if [ "$_cs_text" ]; then launch shell "$2" "$_cs_text"; else launch script "$2" 9<"$_cs_h/text"; fi
}
# include run.sh

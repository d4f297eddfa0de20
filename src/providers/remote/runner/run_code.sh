# shellcheck shell=sh
# program: runs code; its words stand in run.sh.
# include launch_code.sh

check() { :; }
# prepare KIND SOURCE: the code becomes a file beside the others of the user, whose name nobody knows; where there
# can be none, standard input, unless that is for its input.
prepare() {
  _cs_main=$PWD/.cloudsandbox-$_cs_tag.py
  [ "$1" = python ] || _cs_main=${_cs_main%py}js
  if ! true >"$_cs_main"; then _cs_main=''; fi
  take text "$2" >"${_cs_main:-$_cs_h/text}" || return
  if [ ! "$_cs_main" ] && [ "$_cs_in" ]; then
    _cs_text=$(cat "$_cs_h/text")
  elif [ ! "$_cs_main" ]; then
    _cs_in=$_cs_h/text
  fi
}
# start KIND
start() { launch "$1" "$_cs_main" "$_cs_text"; }
# include run.sh

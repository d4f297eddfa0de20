# shellcheck shell=sh
# What programs that do something to a path share. answer CODE: a report without output, and the end. 1: a file stands
# where a directory is needed, 2: it is a directory, 3: it is not permitted, 4: there is no room.
answer() {
  printf '\n%s\n\n\n\n\n%s end\n' "$_cs_tag ran $1 0 0 0 0 0 0" "$_cs_tag"
  exit
}
there() { [ -e "$1" ] || [ -L "$1" ]; }
# No name is taken for an option, and none has two slashes at its start, which may mean something else.
named() {
  path "$1"
  case $_cs_v in /*) ;; *) _cs_v=./$_cs_v ;; esac
}
# missing PATH: says why it cannot be there, when something is in the way. The last directory that is there is _cs_d.
missing() {
  _cs_d=$1
  while [ "$_cs_d" ] && [ ! -e "$_cs_d" ]; do _cs_d=${_cs_d%/*}; done
  [ "$_cs_d" ] || _cs_d=/
  [ -d "$_cs_d" ] || answer 1
  [ -x "$_cs_d" ] || answer 3
}

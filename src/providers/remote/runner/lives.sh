# shellcheck shell=sh
# tree_lives MARK ROOT: whether something of a command is seen to live. It is asked after every command, so
# only processes with higher numbers than the first one are looked at.
tree_lives() {
  _cs_mark=$1 _cs_root=$2 _cs_stop='' _cs_seen=' '
  [ "${_cs_root%%:*}" ] || return 1
  find_root
  pass "${_cs_root%%:*}"
  [ $_cs_new ]
}

# shellcheck shell=sh
# tree_lives MARK ROOT SPARE: whether something of a command is seen to live, apart from the process SPARE. It is asked
# after every command, so it looks at what costs little: its process group, and the environments of processes with
# higher numbers than its first one. What hides from that is ended with the command nevertheless, where that is asked for.
tree_lives() {
  [ "${2%%:*}" ] || return 1
  _cs_v=''
  for _cs_f in /proc/[0-9]*; do
    [ "${_cs_f#/proc/}" -le "${2%%:*}" ] || _cs_v="$_cs_v $_cs_f/environ"
  done
  # One whose variables cannot be read yet is being made just then, and is looked at again.
  _cs_n=0
  # shellcheck disable=SC2086
  while [ "$_cs_v" ]; do
    if grep -qszF "$1" $_cs_v; then return 0; fi
    if [ $_cs_n = 10 ] || ! grep -Lsz -e '' $_cs_v | grep -q .; then break; fi
    _cs_n=$((_cs_n + 1))
  done
  kill -s 0 -- "-${2%%:*}" || return 1
  _cs_mark=$1 _cs_root=$2 _cs_spare=" $3 " _cs_stop='' _cs_seen=' '
  find_root
  pass 0
  [ $_cs_new ]
}

# shellcheck shell=sh
# tree_lives MARK ROOT SPARE: whether something of a command is seen to live, apart from the process SPARE. It is asked
# after every command, so it looks at what costs little: its process group, and the environments of processes with
# higher numbers than its first one. What hides from that is ended with the command nevertheless, where that is asked for.
tree_lives() {
  [ "${2%%:*}" ] || return 1
  _cs_m=''
  for _cs_f in /proc/[0-9]*; do
    [ "${_cs_f#/proc/}" -le "${2%%:*}" ] || _cs_m="$_cs_m $_cs_f/environ"
  done
  # One without variables may be in the midst of its exec, and is looked at again: until it has arguments, and once more.
  _cs_n=0 _cs_k=1
  # shellcheck disable=SC2086
  while [ "$_cs_m" ]; do
    if grep -qszF "$1" $_cs_m; then return 0; fi
    if [ ! $_cs_k ] || [ $_cs_n = 20 ]; then break; fi
    _cs_f=$(grep -Lsz -e '' $_cs_m)
    _cs_n=$((_cs_n + 1)) _cs_k='' _cs_m=''
    for _cs_f in $_cs_f; do
      _cs_p=${_cs_f#/proc/} _cs_p=${_cs_p%/*}
      if ! look || [ "$_cs_pg" = 0 ]; then continue; fi
      _cs_m="$_cs_m $_cs_f"
      if unborn "$_cs_p"; then _cs_k=1; fi
    done
  done
  kill -s 0 -- "-${2%%:*}" || return 1
  _cs_mark=$1 _cs_root=$2 _cs_spare=" $3 " _cs_stop='' _cs_seen=' '
  find_root
  pass 0
  [ $_cs_new ]
}

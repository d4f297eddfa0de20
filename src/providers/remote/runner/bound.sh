# shellcheck shell=sh
# For wires that keep no limit.
#
# $1 limit in seconds, or nothing; $2 directory, "~" is the home; $3 letters: e to end what the command leaves in the
# background, k to keep the outputs open for it, where the wire would close them; the others as wrap.sh has them,
# without these
#
# Further codes: 998, the directory cannot be entered, and nothing ran; 997, the limit has passed, and nothing of the
# command is left; 996, something may be. Behind the code may stand a number: with 137, how often the system has
# meanwhile killed something in this container for want of memory, where it tells; with others 1, when something was
# ended in the background.
_cs_limit=$1 _cs_dir=$2 _cs_how=$3 _cs_plain=1 _cs_timer='' _cs_late='' _cs_k='' _cs_before=''
# include tree.sh
# include lives.sh

# It holds none of the outputs, and takes its sleep with it. Where sleep takes no fractions the limit is a little
# longer. This shell is marked like the command: it is only the parent of what is ended.
timer() {
  exec </dev/null >/dev/null 3>&- 9<&-
  trap 'kill -s KILL $!; exit 1' TERM
  sleep "$_cs_limit" &
  wait $!
  case $? in
  0) ;;
  1)
    sleep $((${_cs_limit%.*} + 1)) &
    wait $! || exit 1
    ;;
  *) exit 1 ;;
  esac
  kill -s USR1 $$
  IFS= read -r _cs_v </proc/self/stat
  end_tree "CLOUDSANDBOX_CALL=$CLOUDSANDBOX_CALL" "$$:" "$$ ${_cs_v%% *}"
}
count_memory_kills() {
  for _cs_f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    while read -r _cs_w _cs_v; do
      [ "$_cs_w" != oom_kill ] || _cs_k=$_cs_v
    done <"$_cs_f"
  done
}
watch() {
  count_memory_kills
  _cs_before=$_cs_k _cs_k=''
  [ "$_cs_limit" ] || return 0
  trap _cs_late=1 USR1
  timer &
  _cs_timer=$!
}
# The timer would end what is run here, too.
ended() {
  if [ "$_cs_late" ]; then
    wait "$_cs_timer"
    _cs_late=99$((7 - ($? > 0)))
  elif [ "$_cs_timer" ]; then
    kill "$_cs_timer"
    wait "$_cs_timer"
  fi
}
over() {
  if [ "$_cs_late" ]; then
    tell "$_cs_late"
    return
  fi
  case $_cs_how in
  *e*)
    if end_tree "CLOUDSANDBOX_CALL=$CLOUDSANDBOX_CALL" "$$:" "$$ $_cs_timer"; then
      [ "$_cs_found" = ' ' ] || _cs_k=1
    fi
    ;;
  esac
  if [ "$1" = 137 ]; then
    count_memory_kills
    _cs_k=$((_cs_k - _cs_before))
  fi
  tell "$1${_cs_k:+ $_cs_k}"
  case $_cs_how in *k*) linger ;; esac
}
linger() {
  # This shell is marked too, and may lead the group that everything is in.
  while tree_lives "CLOUDSANDBOX_CALL=$CLOUDSANDBOX_CALL" "$$:" $$; do sleep 1; done
}
enter() {
  case $_cs_dir in
  '') ;;
  \~ | \~/*) cd -- "$HOME${_cs_dir#?}" || return 1 ;;
  *) cd -- "$_cs_dir" || return 1 ;;
  esac
}
# include wrap.sh
bound() {
  shift 3
  if enter; then wrap "$@"; fi
  tell 998
  exit 126
}

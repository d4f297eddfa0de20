# shellcheck shell=sh
# Runs a command and reports how it ended: run_shell.sh and run_code.sh are the programs, which say how a command of
# their kinds is begun.
#
# $1 tag
# $2 working directory; nothing: the one that the line was given
# $3 limit in seconds, or 0
# $4 $5 how much of each output the report holds at most: its head and its tail
# $6 letters: j both outputs in one; k keep what does not fit into the report, to be fetched; e end what the
#    command leaves in the background
# $7 shell, python or node; $8 which shell
# $9 the text, $10 its input, $11 variables, as lines for sh; each in base64, or "@" for what was stored, or nothing
# $12... tags of commands to forget
#
# The folder holds: pid of this program, and root, the command's first process; text and input; the pipes o and
# e; out and err; end, the first line of the report without its tag; forget. Beside it there may be
# FOLDER.stop: it is to be ended, or not to be started.
#
# A proxy may deliver a request twice when its own connection breaks: the folder is there then, and the
# command is not run again. What is in the folder is kept for the case that the report gets lost on its
# way; see ask.sh.
#
# What happens comes as lines through a pipe to the reader at the end: nothing is polled, and a command that
# takes the folder away changes nothing, since all that matters is open by then: the files before the pipes, whose
# other ends the command waits for.
# include prologue.sh
# include tree.sh
# include lives.sh
# include report.sh
# include forgetting.sh

_cs_id=CLOUDSANDBOX_RUN=$_cs_tag
make_folder() {
  if [ -d "$_cs_h" ]; then tell again; fi
  if [ -e "$_cs_h.stop" ]; then tell stopped 1; fi
  mkdir -m 700 "$_cs_h" && mkfifo "$_cs_h/o" "$_cs_h/e" && true >"$_cs_h/out" && true >"$_cs_h/err" &&
    echo $$ >"$_cs_h/pid" && [ -s "$_cs_h/pid" ] && return 0
  rm -rf "$_cs_h"
  return 1
}

# take NAME SOURCE: prints it.
take() (
  case $2 in
  @) try has "$1" && cat "$_cs_h.$1" && rm -f "$_cs_h.$1" ;;
  *) printf %s "$2" | base64 -d ;;
  esac
)

give_up() {
  rm -rf "$_cs_h"
  [ ! "$_cs_main" ] || rm -f "$_cs_main"
  tell "$1"
}

# store PIPE FILE MOST: what comes through the pipe goes to the file. dd writes what it gets at once; every 4
# MiB or 128 reads there is a look at the size. When the file has more than a report takes, two others take
# turns, so that the end is at hand and the disk does not fill up; what is dropped is counted. After the
# command's end (TERM) the rest is read and dropped: what was left in the background neither blocks nor dies.
store() {
  exec 8>>"$_cs_h/$2" <"$_cs_h/$1"
  trap _cs_over=1 TERM
  trap '' PIPE
  _cs_b=$_cs_h/$2 _cs_f=$_cs_h/$2 _cs_k=0 _cs_over=''
  while _cs_r=$(LC_ALL=C dd bs=32k count=128 2>&1 >&8); do
    [ ! "$_cs_over" ] || exec cat >/dev/null
    is_full || { at_end "$1" "$2" && return; }
    if [ "$_cs_keep" ] || [ "$(size "$_cs_f")" -lt "$3" ]; then
      continue
    elif [ "$_cs_f" = "$_cs_b" ]; then
      _cs_f=$_cs_b.b
    else
      _cs_k=$((_cs_k + $(size "$_cs_b.a")))
      mv "$_cs_b.b" "$_cs_b.a"
    fi
    echo "gone-$2 $_cs_k"
    [ -d "$_cs_h" ] || mkdir -m 700 "$_cs_h"
    exec 8>>"$_cs_f"
  done
  lose "$2" "$1"
}
# at_end PIPE FILE
at_end() {
  true >"$_cs_h/$1.end"
  echo "end-$2"
}
# is_full: whether dd has read all that it should.
is_full() {
  _cs_r=${_cs_r%% records in*} _cs_r=${_cs_r##*[!0-9+]}
  [ $((${_cs_r%+*} + ${_cs_r#*+})) -eq 128 ]
}
# lose FILE PIPE: nothing can be written any more. The rest is read and counted; the end of the file is given up, so
# that there is room for the other output, and for the report.
lose() {
  _cs_n=$(size "$_cs_f")
  _cs_k=$((_cs_n > 65536 ? 65536 : _cs_n))
  dd if=/dev/null of="$_cs_f" bs=1 seek=$((_cs_n - _cs_k))
  _cs_k=$((_cs_k + 1))
  echo "lost-$1 $_cs_k"
  while _cs_r=$(LC_ALL=C dd bs=32k count=128 2>&1 >/dev/null) && [ ! "$_cs_over" ]; do
    _cs_n=${_cs_r##*records out?}
    _cs_k=$((_cs_k + ${_cs_n%% *}))
    echo "lost-$1 $_cs_k"
    is_full || { at_end "$2" "$1" && return; }
  done
  exec cat >/dev/null
}
# timer LIMIT: it is a process of its own, ended together with its sleep, so that nothing sleeps on behind a
# command that was quick. Where sleep takes no fractions the limit is a little longer.
timer() {
  sleep "$1" &
  echo "timer $!"
  wait $!
  case $? in
  0) ;;
  1)
    sleep $((${1%.*} + 1)) &
    echo "timer $!"
    wait $! || exit
    ;;
  *) exit ;;
  esac
  echo late
  read -r _cs_v <"$_cs_h/root"
  end_tree "$_cs_id" "$_cs_v"
  echo "gone $?"
}

# become KIND SHELL: this process becomes the command.
become() {
  exec >"$_cs_h/o"
  if [ "$_cs_join" ]; then exec 2>&1; else exec 2>"$_cs_h/e"; fi
  exec <"${_cs_in:-/dev/null}"
  IFS= read -r _cs_v </proc/self/stat
  # shellcheck disable=SC2086
  set -- "$1" "$2" "${_cs_v%% *}" ${_cs_v##*)}
  echo "$3:${23}" >"$_cs_h/root"
  export CLOUDSANDBOX_RUN="$_cs_tag"
  [ ! "$_cs_path" ] || export "PATH=$_cs_path"
  [ ! "$_cs_env" ] || eval "$_cs_env"
  start "$@"
}

check "$8"
case $2 in
'') ;;
\~ | \~/*) cd -- "$HOME${2#?}" || tell nodir ;;
*) cd -- "$2" || tell nodir ;;
esac
try make_folder || tell unstored
_cs_join='' _cs_keep='' _cs_text='' _cs_main='' _cs_in='' _cs_env=''
case $6 in *j*) _cs_join=1 ;; esac
case $6 in *k*) _cs_keep=1 ;; esac
if [ "${10}" ]; then
  _cs_in=$_cs_h/input
  case ${10} in
  @) (try has input && mv "$_cs_h.input" "$_cs_in") ;;
  *) take input "${10}" >"$_cs_in" ;;
  esac || give_up unstored
fi
prepare "$7" "$9" || give_up unstored
if [ "${11}" ]; then _cs_env=$(take env "${11}") || give_up unstored; fi
if [ $# -gt 11 ]; then (shift 11 && forget "$@") >/dev/null & fi

exec 5<"$_cs_h/out" 6<"$_cs_h/err"
{
  if [ "$3" != 0 ]; then timer "$3" & fi
  store o out $(($4 + $5)) &
  _cs_s=$! _cs_r=$!
  if [ "$_cs_join" ]; then at_end e err; else
    store e err $(($4 + $5)) &
    _cs_r=$!
  fi
  echo "stores $_cs_s $_cs_r"
  (become "$7" "$8")
  echo "code $?"
  # What stands in the pipes is waited for; what was left in the background and holds them is not.
  _cs_n=0
  until [ -e "$_cs_h/o.end" ] && [ -e "$_cs_h/e.end" ]; do
    if [ $_cs_n = 300 ]; then
      { sleep 0.2 && echo drained && sleep 2 && echo drained; } &
      break
    fi
    _cs_n=$((_cs_n + 1))
  done
} 5<&- 6<&- | {
  _cs_e=ran _cs_c='' _cs_g=0 _cs_t='' _cs_s='' _cs_o='' _cs_r='' _cs_bg=0
  _cs_ko='' _cs_ke='' _cs_lo=0 _cs_le=0 _cs_slow='' _cs_root='' _cs_tw=''
  [ "$3" != 0 ] || _cs_tw=1
  while read -r _cs_k _cs_v; do
    case $_cs_k in
    timer) _cs_t=$_cs_v _cs_tw=1 ;;
    stores) _cs_s=$_cs_v ;;
    late) _cs_e=late ;;
    gone) _cs_g=$((_cs_v == 0)) ;;
    code) _cs_c=$_cs_v ;;
    end-out) _cs_o=1 ;;
    end-err) _cs_r=1 ;;
    gone-out) _cs_ko=$_cs_v ;;
    gone-err) _cs_ke=$_cs_v ;;
    lost-out) _cs_lo=$_cs_v ;;
    lost-err) _cs_le=$_cs_v ;;
    drained)
      # Where nothing is left that could hold them, it is the readers that are slow.
      read -r _cs_root <"$_cs_h/root"
      if [ "$_cs_slow" ] || tree_lives "$_cs_id" "$_cs_root"; then break; fi
      _cs_slow=1
      ;;
    esac
    # A timer that has not told its number yet could not be ended.
    case $_cs_c/$_cs_o/$_cs_r/$_cs_tw in ?*/1/1/1) break ;; esac
  done
  [ ! "$_cs_t" ] || kill "$_cs_t"
  # shellcheck disable=SC2086
  [ "$_cs_o$_cs_r" = 11 ] || kill $_cs_s
  [ ! "$_cs_main" ] || rm -f "$_cs_main"
  # The command has taken it away, with what it had printed, which is open here.
  if [ ! -e "$_cs_h/out" ]; then
    mkdir -m 700 "$_cs_h"
    cat <&5 >"$_cs_h/out" || _cs_lo=$((_cs_lo + 1))
    cat <&6 >"$_cs_h/err" || _cs_le=$((_cs_le + 1))
  fi
  exec 5<&- 6<&-
  [ ! -e "$_cs_h.stop" ] || [ $_cs_e = late ] || _cs_e=stopped
  read -r _cs_root <"$_cs_h/root"
  if [ $_cs_e != ran ]; then
    [ $_cs_g = 1 ] || { end_tree "$_cs_id" "$_cs_root" && _cs_g=1; }
  elif tree_lives "$_cs_id" "$_cs_root"; then
    _cs_bg=1
  fi
  case $_cs_e$6 in ran*e*) if end_tree "$_cs_id" "$_cs_root"; then _cs_bg=$((_cs_bg * 2)); fi ;; esac
  _cs_a=$(size "$_cs_h/out")
  [ ! "$_cs_ko" ] || _cs_a=$((_cs_a + _cs_ko + $(size "$_cs_h/out.a") + $(size "$_cs_h/out.b")))
  _cs_b=$(size "$_cs_h/err")
  [ ! "$_cs_ke" ] || _cs_b=$((_cs_b + _cs_ke + $(size "$_cs_h/err.a") + $(size "$_cs_h/err.b")))
  _cs_v="$_cs_e ${_cs_c:-137} $_cs_g $_cs_a $_cs_b $_cs_bg $_cs_lo $_cs_le"
  echo "$_cs_v" >"$_cs_h/end"
  # shellcheck disable=SC2086
  report "$4" "$5" $_cs_v
  if [ -e "$_cs_h/forget" ]; then
    clear
  elif [ "$_cs_in" ]; then
    rm -f "$_cs_in" >/dev/null &
  fi
}

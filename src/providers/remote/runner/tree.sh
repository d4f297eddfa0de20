# shellcheck shell=sh
# end_tree MARK ROOT SPARE: ends every process of a command, and says whether none was left: 0 nothing, 1
# something lives, 2 there is no way to look; _cs_found has them. Those with a number in SPARE do not count.
#
# MARK is NAME=VALUE, a variable that the command was given. ROOT is "PID:START" of its first process, or
# "PID:", or "PID:~SECONDS" where it is known only that it began at most so long ago, and that number may be
# another's by now; or nothing. To the command belong the processes with the mark in their environment, those
# whose parent, group or session belongs to it (a process may clear its environment, or leave its session,
# but not both its parents and these), and what they start meanwhile. A parent that dies takes the trace to
# its children along, so all are stopped first, again until no new one appears, and only then is one
# killed: nothing that is stopped forks, and what tries again finds the table as full as it was.
#
# Until then nothing is forked here: a command may have used up all the processes that its user may have. Only a
# program of root's may (hasten.sh), which then need not look at each process by itself.
# And each is stopped as soon as it is found: they may take all the processor's time. Every variable begins
# with _cs_: what a shell got exported it keeps exported.
#
# A process is PID:START, since its number may be used again.

# variables PID: whether the mark is among its variables; _cs_l is empty when it has none.
variables() {
  _cs_l=
  while IFS= read -r _cs_v || [ "$_cs_v" ]; do
    case $_cs_v in *"$_cs_mark"*) return 0 ;; esac
    _cs_l=$_cs_l$_cs_v
  done <"/proc/$1/environ" || _cs_l=-
  return 1
}

# unborn PID: whether one without variables is in the midst of its exec: it has no arguments either, and is none of the
# kernel's, whose group is 0. It was looked at before.
unborn() {
  [ "$_cs_pg" != 0 ] || return 1
  _cs_v=
  IFS= read -r _cs_v <"/proc/$1/cmdline"
  [ ! "$_cs_v" ]
}

# has_mark PID: it was looked at before.
has_mark() {
  variables "$1" && return
  if [ ! "$_cs_l" ]; then
    if unborn "$1"; then
      _cs_blank=1
      return 1
    fi
    # Its exec may be over since.
    variables "$1" && return
  fi
  # The kernel shows a process its arguments a moment before its variables: without them it is looked at each time.
  [ ! "$_cs_l" ] && [ "$_cs_pg" != 0 ] || _cs_seen="$_cs_seen$_cs_w "
  return 1
}

# look: reads what process _cs_p is, into _cs_pp (parent), _cs_pg (group), _cs_ps (session), _cs_pt (start) and
# _cs_w; fails when it has ended. Its name may hold blanks, line ends and parentheses. One that ended is there until
# its parent has asked for it; one whose first thread has ended looks the same but for its number of threads, and lives.
look() {
  _cs_l=
  while IFS= read -r _cs_v || [ "$_cs_v" ]; do _cs_l="$_cs_l $_cs_v"; done <"/proc/$_cs_p/stat"
  # shellcheck disable=SC2086
  set -- ${_cs_l##*)}
  _cs_pp=$2 _cs_pg=$3 _cs_ps=$4 _cs_pt=${20} _cs_w=$_cs_p:${20}
  case $1 in
  [ZX]) [ "${18:-0}" -gt 1 ] ;;
  '') return 1 ;;
  esac
}

# belongs: whether the process that was looked at does. What began before the command has no mark.
belongs() {
  case $_cs_tree$_cs_first in *" $_cs_pp:"* | *" $_cs_pg:"* | *" $_cs_ps:"*) return 0 ;; esac
  case $_cs_seen in *" $_cs_w "*) return 1 ;; esac
  [ "$_cs_pt" -ge "$_cs_since" ] && has_mark "$_cs_p"
}

# quick: names in _cs_all the processes that may belong to the tree, so that the others are not looked at one by one;
# for programs that may fork, where grep knows -z. It is only an advice: each is looked at by itself, too.
_cs_quick='' _cs_all=''
quick() {
  _cs_l=- _cs_v=
  for _cs_w in $_cs_first $_cs_tree; do _cs_l="$_cs_l|${_cs_w%%:*}" _cs_v="$_cs_v /proc/${_cs_w%%:*}/stat"; done
  _cs_all=$(
    grep -lsE "\) . ([0-9]+ ){0,2}($_cs_l) " /proc/[0-9]*/stat
    grep -lszF -e "$_cs_mark" /proc/[0-9]*/environ
    grep -Lsz -e '' /proc/[0-9]*/environ
    echo /proc/1/stat
  )
  case $_cs_all in */proc/1/stat) _cs_all=$_cs_all$_cs_v ;; *) _cs_all='' ;; esac
}

# pass LEAST: looks once at all processes with a number from LEAST on, adds those that belong to the tree,
# and stops them when _cs_stop says so; _cs_new says whether there was one, _cs_blank whether one has to be looked at
# again. A look at all takes out what has ended.
pass() {
  _cs_here=' ' _cs_new='' _cs_blank='' _cs_least=$1
  [ ! "$_cs_quick" ] || quick
  # Not as ${_cs_all:-PATTERN}, which zsh does not expand.
  # shellcheck disable=SC2086
  if [ "$_cs_all" ]; then set -- $_cs_all; else set -- /proc/[0-9]*; fi
  for _cs_f in "$@"; do
    _cs_p=${_cs_f#/proc/} _cs_p=${_cs_p%/*}
    [ "$_cs_p" -ge "$_cs_least" ] || continue
    case $_cs_spare in *" $_cs_p "*) continue ;; esac
    look || continue
    case $_cs_tree in
    *" $_cs_w "*) ;;
    *)
      belongs || continue
      [ ! "$_cs_stop" ] || kill -s STOP "$_cs_p"
      _cs_tree="$_cs_tree$_cs_w " _cs_new=1
      ;;
    esac
    _cs_here="$_cs_here$_cs_w "
  done
  [ "$_cs_least" -gt 0 ] || _cs_tree=$_cs_here
}

# find_root: the same for the first process. Its number is that of its session, as long as anything is left in that.
# Without it, and without an age, every process has to be looked at for the mark.
find_root() {
  _cs_tree=' ' _cs_first='' _cs_since=0 _cs_p=${_cs_root%%:*} _cs_f=${_cs_root#*:}
  case $_cs_root in [1-9]*:*) ;; *) return ;; esac
  look
  case $_cs_f in
  '~'*)
    read -r _cs_v _cs_l </proc/uptime && _cs_since=$(((${_cs_v%%.*} - ${_cs_f#?}) * 100))
    [ ! "$_cs_pt" ] || has_mark "$_cs_p" || return
    ;;
  '' | "$_cs_pt") ;;
  *)
    [ ! "$_cs_pt" ] || return
    _cs_since=$_cs_f
    ;;
  esac
  case $_cs_spare in
  *" $_cs_p "*) ;;
  *) [ ! "$_cs_pt" ] || [ ! "$_cs_stop" ] || kill -s STOP "$_cs_p" ;;
  esac
  _cs_since=${_cs_pt:-$_cs_since} _cs_first=" $_cs_p:"
}

# kill_tree: until all of it has ended. Since all were stopped while the last look at all found no new one, none has come
# since.
kill_tree() {
  _cs_n=0
  while [ "$_cs_tree" != ' ' ]; do
    [ $_cs_n -lt 50 ] || return 1
    _cs_f='' _cs_here=' '
    for _cs_w in $_cs_tree; do _cs_f="$_cs_f ${_cs_w%%:*}"; done
    # shellcheck disable=SC2086
    kill -s KILL $_cs_f
    [ $_cs_n -lt 10 ] || sleep 0.03
    _cs_n=$((_cs_n + 1))
    for _cs_f in $_cs_tree; do
      _cs_p=${_cs_f%%:*}
      if look && [ "$_cs_w" = "$_cs_f" ]; then _cs_here="$_cs_here$_cs_w "; fi
    done
    _cs_tree=$_cs_here
  done
}

end_tree() {
  [ -r /proc/self/stat ] || return 2
  _cs_mark=$1 _cs_root=$2 _cs_spare=" $3 " _cs_stop=1 _cs_seen=' ' _cs_n=0 _cs_new=1 _cs_more=0
  find_root
  # Most have higher numbers than the first one, which saves a look at all others.
  while [ "${_cs_root%%:*}" ] && [ $_cs_new ] && [ $_cs_n -lt 200 ]; do
    pass "${_cs_root%%:*}"
    _cs_n=$((_cs_n + 1))
    [ ! "$_cs_blank" ] || _cs_more=2
  done
  # Behind one that could not be read there are two looks without such a one: a list of grep's may have missed it.
  _cs_new=1 _cs_m=0
  while [ $_cs_new ] || { [ $_cs_more -gt 0 ] && [ $_cs_m -lt 20 ]; } && [ $_cs_n -lt 300 ]; do
    pass 0
    _cs_n=$((_cs_n + 1)) _cs_m=$((_cs_m + 1)) _cs_more=$((_cs_more - 1))
    [ ! "$_cs_blank" ] || _cs_more=2
    [ ! $_cs_new ] || _cs_m=0
  done
  _cs_found=$_cs_tree
  kill_tree
}

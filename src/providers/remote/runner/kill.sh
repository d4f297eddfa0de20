# shellcheck shell=sh
# program: ends what belongs to a command, for wires that tell the exit code: 0 when nothing is left. $1 its mark,
# NAME=VALUE; $2 its first process, "PID:START", "PID:" or nothing; the others are files to remove, where
# "~" is the home.
exec 2>/dev/null
# include tree.sh
# A number alone may be another's by now.
_cs_root=$2
case $_cs_root in
[1-9]*:)
  _cs_mark=$1 _cs_seen=' ' _cs_w=''
  [ ! -e "/proc/${_cs_root%:}" ] || has_mark "${_cs_root%:}" || _cs_root=''
  ;;
esac
end_tree "$1" "$_cs_root"
_cs_n=$?
shift 2
for _cs_f; do
  case $_cs_f in \~/*) _cs_f=$HOME${_cs_f#?} ;; esac
  rm -f -- "$_cs_f"
done
exit $_cs_n

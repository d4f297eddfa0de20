# shellcheck shell=sh
# program: what is at a path, and changes of names. $1 tag, $2 the path in base64, $3 most bytes of a list, $4 stat, list,
# remove, clear, move or make, $5 where to move in base64.
#
# What is there comes as stdout, of each: its kind as find has it, size, seconds since 1970, mode in octal, name, NUL, with
# blanks between them; or "=" and what stat calls the raw mode, size, seconds, "-", name; what nothing tells is "-". The exit
# code says why it could not be done, as in ways.sh; 5: it would be moved into itself.
# include prologue.sh
# include path.sh
# include ways.sh
# unmade PATH: why it could not be made.
unmade() {
  ! there "$1" || [ -d "$1" ] || answer 1
  missing "$1"
  if [ -w "$_cs_d" ]; then answer 4; else answer 3; fi
}
# about PATH: what is there, without its name.
about() {
  if [ "$_cs_k" ]; then
    # shellcheck disable=SC2086
    find $_cs_l "$1" -maxdepth 0 -printf '%y %s %T@ %m '
  elif _cs_w=$(stat $_cs_l -c '=%f %s %Y' "$1"); then
    printf '%s - ' "$_cs_w"
  else
    _cs_w=o _cs_n=0
    if [ ! "$_cs_l" ] && [ -L "$1" ]; then
      _cs_w=l
    elif [ -d "$1" ]; then
      _cs_w=d
    elif [ -f "$1" ]; then
      _cs_w=f
      [ ! -r "$1" ] || _cs_n=$(($(wc -c <"$1")))
    fi
    printf '%s %s - - ' "$_cs_w" "$_cs_n"
  fi
}
entries() {
  if [ "$_cs_k" ]; then
    find "$_cs_v/" -mindepth 1 -maxdepth 1 ! -name "$_cs_o" -printf '%y %s %T@ %m %f\0'
    return
  fi
  for _cs_f in "$_cs_v"/* "$_cs_v"/.[!.]* "$_cs_v"/..?*; do
    # shellcheck disable=SC2254
    case ${_cs_f##*/} in $_cs_o) continue ;; esac
    there "$_cs_f" || continue
    about "$_cs_f"
    printf '%s\0' "${_cs_f##*/}"
  done
}
# show MOST VERB: the end.
show() {
  printf '\n%s\n' "$_cs_tag ran 0 0 $1 0 0 0 0"
  if [ "$2" = list ]; then entries; else about "$_cs_v" && printf '\0'; fi | head -c "$1" | base64 | tr -d '\n'
  printf '\n\n\n\n%s end\n' "$_cs_tag"
  exit
}
_cs_o='.cloudsandbox-????????????????????????????????*' _cs_l='' _cs_k=''
[ ! "$(find / -maxdepth 0 -printf x)" ] || _cs_k=1
named "$2"
case $4 in
stat)
  if ! there "$_cs_v"; then
    missing "$_cs_v"
    tell absent
  fi
  [ ! -e "$_cs_v" ] || _cs_l=-L
  show 4096 stat
  ;;
list)
  if [ -d "$_cs_v" ]; then
    if [ ! -r "$_cs_v" ] || [ ! -x "$_cs_v" ]; then answer 3; fi
    show "$3" list
  fi
  ! there "$_cs_v" || answer 1
  missing "$_cs_v"
  tell absent
  ;;
remove | clear)
  if ! there "$_cs_v"; then
    missing "$_cs_v"
    tell absent
  fi
  if [ -d "$_cs_v" ] && [ ! -L "$_cs_v" ]; then
    [ "$4" = clear ] || answer 2
    rm -rf -- "$_cs_v"
  else
    rm -f -- "$_cs_v"
  fi
  ! there "$_cs_v" || answer 3
  ;;
move)
  _cs_s=$_cs_v
  named "$5"
  if ! there "$_cs_s"; then
    missing "$_cs_s"
    tell absent
  fi
  [ "$_cs_s" != "$_cs_v" ] || answer 0
  case $_cs_v/ in "$_cs_s"/*) answer 5 ;; esac
  [ ! -d "$_cs_v" ] || answer 2
  mkdir -p -- "${_cs_v%/*}/" || unmade "${_cs_v%/*}"
  mv -f -- "$_cs_s" "$_cs_v" || unmade "$_cs_v"
  ;;
make)
  mkdir -p -- "$_cs_v" || unmade "$_cs_v"
  ;;
esac
answer 0

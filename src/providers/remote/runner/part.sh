# shellcheck shell=sh
# program: files in parts. $1 tag, $2 a path in base64, $3 most bytes, $4 cut, join or take, $5 where it begins, $6 how many
# bytes, $7 another path in base64.
#
# cut: a part of $2 comes as stdout. As stderr comes what says how the file is, from before and, as its tail, from after that:
# size, number, time; "0" of one without a size, such as the kernel's.
# join: $2, which has $6 bytes, becomes the end of $7, which has $5, and goes away. It may come twice.
# take: $7 becomes what is in $2, which goes away. A file that is there keeps its mode, its owner and its links, and stays as it
# was when there is no room.
#
# The exit code says why it could not be done, as in ways.sh; 6: what was there before is gone, or has another size; 7: the old file
# is written over in part, and the whole new one is $2 with ".whole" behind it.
# include prologue.sh
# include path.sh
# include ways.sh
stamp() {
  if [ -s "$1" ]; then
    find -L "$1" -maxdepth 0 -printf '%s %i %T@' || stat -L -c '%s %i %Y' "$1" || echo $(($(wc -c <"$1"))) 0 0
  else
    printf 0
  fi
}
size() {
  _cs_n=$(stamp "$1")
  _cs_n=${_cs_n%% *}
}
about() { find -L "$1" -maxdepth 0 -printf '%U %G %n %m' || stat -L -c '%u %g %h %a' "$1"; }
# rename: _cs_s takes the place of the file _cs_v in one step. Not where that would change its owner or part it from its other names,
# and not where something is mounted on it; then both are as they were.
rename() {
  _cs_t=$(readlink -f "$_cs_v" && echo .) || return
  _cs_t=${_cs_t%??} _cs_w=
  if [ -e "$_cs_t" ]; then
    _cs_w=$(about "$_cs_t")
    # Who runs as another then, or what only its owner may read, is not renamed over.
    case $_cs_w in *' 1 '[4567][0-7][0-7]) ;; *) return 1 ;; esac
  fi
  # A link leads elsewhere, perhaps to another file system.
  _cs_n=${_cs_t%/*}/${_cs_s##*/}
  _cs_l=
  if [ ! -e "$_cs_n" ]; then
    _cs_l=1
    ln "$_cs_s" "$_cs_n" || cat "$_cs_s" >"$_cs_n" || abandon || return
  fi
  if [ "$_cs_w" ]; then
    _cs_o=$(about "$_cs_n")
    [ "${_cs_o% * *}" = "${_cs_w% * *}" ] || abandon || return
    chmod "${_cs_w##* }" "$_cs_n" || abandon || return
  fi
  mv -f "$_cs_n" "$_cs_t" || abandon
}
abandon() {
  [ ! "$_cs_l" ] || rm -f "$_cs_n"
  return 1
}
# overwrite: what is in _cs_s becomes what is in _cs_v. What is longer than the old file goes behind it first, so that there is room
# for all before anything of it is lost.
overwrite() {
  # Only for who may read it, too, it can be opened to be written over.
  if [ ! -r "$_cs_v" ]; then
    cat "$_cs_s" >"$_cs_v" || answer 4
    return
  fi
  size "$_cs_s"
  _cs_w=$_cs_n
  size "$_cs_v"
  if [ "$_cs_w" -gt "$_cs_n" ] && ! tail -c "+$((_cs_n + 1))" "$_cs_s" >>"$_cs_v"; then
    dd if=/dev/null of="$_cs_v" bs=1 seek="$_cs_n"
    answer 4
  fi
  if ! cat "$_cs_s" 1<>"$_cs_v" || { [ "$_cs_w" -lt "$_cs_n" ] && ! dd if=/dev/null of="$_cs_v" bs=1 seek="$_cs_w"; }; then
    mv -f "$_cs_s" "$_cs_s.whole"
    answer 7
  fi
}
code() { base64 | tr -d '\n'; }
named "$2"
case $4 in
cut)
  if [ ! -e "$_cs_v" ]; then
    missing "$_cs_v"
    tell absent
  fi
  [ -f "$_cs_v" ] || answer 2
  if ! true <"$_cs_v"; then answer 3; fi
  _cs_w=$(stamp "$_cs_v")
  printf '\n%s\n' "$_cs_tag ran 0 0 $3 $3 0 0 0"
  # dd goes to where it begins, tail may read all that is before.
  if [ "$_cs_w" != 0 ] && [ $(($5 % $6)) = 0 ]; then
    dd if="$_cs_v" bs="$6" skip=$(($5 / $6)) count=1 | code
  else
    tail -c "+$(($5 + 1))" "$_cs_v" | head -c "$6" | code
  fi
  printf '\n\n'
  printf %s "$_cs_w" | code
  echo
  printf %s "$(stamp "$_cs_v")" | code
  printf '\n%s end\n' "$_cs_tag"
  exit
  ;;
join)
  _cs_s=$_cs_v
  named "$7"
  [ -f "$_cs_v" ] || answer 6
  [ -w "$_cs_v" ] || answer 3
  size "$_cs_v"
  if [ ! -e "$_cs_s" ] && [ "$_cs_n" = $(($5 + $6)) ]; then answer 0; fi
  [ "$_cs_n" -ge "$5" ] || answer 6
  [ "$_cs_n" = "$5" ] || dd if=/dev/null of="$_cs_v" bs=1 seek="$5"
  size "$_cs_s"
  [ "$_cs_n" = "$6" ] || answer 6
  cat "$_cs_s" >>"$_cs_v" || answer 4
  size "$_cs_v"
  [ "$_cs_n" = $(($5 + $6)) ] || answer 4
  rm -f "$_cs_s"
  ;;
take)
  _cs_s=$_cs_v
  named "$7"
  [ -f "$_cs_s" ] || answer 6
  if there "$_cs_v"; then
    if [ -e "$_cs_v" ] && [ ! -f "$_cs_v" ]; then answer 2; fi
    if [ -e "$_cs_v" ] && [ ! -w "$_cs_v" ]; then answer 3; fi
    if ! rename; then
      if ! true >>"$_cs_v"; then answer 3; fi
      overwrite
    fi
    rm -f "$_cs_s"
  else
    mv -f -- "$_cs_s" "$_cs_v" || answer 3
  fi
  ;;
esac
answer 0

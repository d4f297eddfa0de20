# shellcheck shell=sh
# program: files in parts. $1 tag, $2 a path in base64, $3 most bytes, $4 cut, join or take, $5 where it begins, $6 how many
# bytes, $7 another path in base64.
#
# cut: a part of $2 comes as stdout. As stderr comes what says how the file is, from before and, as its tail, from after that:
# size, number, time; "0" of one without a size, such as the kernel's.
# join: $2, which has $6 bytes, becomes the end of $7, which has $5, and goes away. It may come twice.
# take: $7 becomes what is in $2, which goes away. A file that is there keeps its mode and its links.
#
# The exit code says why it could not be done, as in ways.sh; 6: what was there before is gone, or has another size.
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
    if ! true >>"$_cs_v"; then answer 3; fi
    # Nothing of what is there is written over before there is room for all that comes.
    size "$_cs_s"
    _cs_w=$_cs_n
    size "$_cs_v"
    if ! tail -c "+$((_cs_n + 1))" "$_cs_s" >>"$_cs_v"; then
      dd if=/dev/null of="$_cs_v" bs=1 seek="$_cs_n"
      answer 4
    fi
    dd if="$_cs_s" of="$_cs_v" bs=65536 conv=notrunc || answer 4
    [ "$_cs_n" -le "$_cs_w" ] || dd if=/dev/null of="$_cs_v" bs=1 seek="$_cs_w"
    rm -f "$_cs_s"
  else
    mv -f -- "$_cs_s" "$_cs_v" || answer 3
  fi
  ;;
esac
answer 0

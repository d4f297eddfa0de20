# shellcheck shell=sh
# size FILE
size() {
  if [ -s "$1" ]; then echo $(($(wc -c <"$1"))); else echo 0; fi
}
code() { base64 | tr -d '\n'; }
# part FILE FROM COUNT
part() {
  [ "$3" -le 0 ] || tail -c "+$(($2 + 1))" "$1" | head -c "$3" | code
  echo
}
# show FILE SIZE HEAD TAIL: all of it when it fits, else its head and its tail, of which two other files may
# hold the end.
show() {
  _cs_n=$2
  [ "$2" -le $(($3 + $4)) ] || _cs_n=$3
  part "$1" 0 "$_cs_n"
  if [ "$_cs_n" != "$2" ] && [ "$4" != 0 ]; then cat "$1" "$1.a" "$1.b" | tail -c "$4" | code; fi
  echo
}
# report HEAD TAIL END CODE GONE SIZE SIZE ...: the last ones are what the file "end" holds.
report() {
  _cs_a=$1 _cs_b=$2
  shift 2
  printf '\n%s %s\n' "$_cs_tag" "$*"
  show "$_cs_h/out" "$4" "$_cs_a" "$_cs_b"
  show "$_cs_h/err" "$5" "$_cs_a" "$_cs_b"
  echo "$_cs_tag end"
}

# shellcheck shell=sh
# Programs for a wire whose only verb is "run this line with sh and give me what it prints".
#
# Each gets the command's tag as $1, works with the command's folder and prints a report, in lines:
#
#   TAG END CODE GONE SIZE SIZE BACKGROUND LOST LOST
#   head of stdout, tail of it, head of stderr, tail of it; each in base64, or nothing
#   TAG end
#
# What else stands around it was printed by others. Nothing that they print themselves is of use. A
# command's variable PATH must not keep a program from finding its own tools, nor may options that came
# with the environment change what it does. Every variable begins with _cs_: a shell keeps exported what
# came to it exported, so that the command would see our value of a variable of its own.
set +eufC
exec 2>/dev/null
_cs_path=$PATH
PATH=/usr/local/bin:/usr/bin:/bin:$PATH

# tell END GONE: a report without output, and the end.
tell() {
  printf '\n%s\n\n\n\n\n%s end\n' "$_cs_tag $1 0 ${2:-0} 0 0 0 0 0" "$_cs_tag"
  exit
}

# places: where the folder may be. The first one that can be written to is taken, so the ones that are the
# same for every request come first.
_cs_tag=$1
try() {
  for _cs_d in /tmp /var/tmp /dev/shm "$TMPDIR" "$HOME" "$PWD"; do
    _cs_h=$_cs_d/.cloudsandbox-$_cs_tag
    [ "$_cs_d" ] && "$@" && return 0
  done
  return 1
}
has() { [ -e "$_cs_h.$1" ]; }
is_there() { [ -d "$_cs_h" ]; }

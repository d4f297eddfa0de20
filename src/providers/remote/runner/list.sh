# shellcheck shell=sh
# program: the regular files below a directory.
#
# $1 tag, $2 directory in base64, $3 most bytes. Of each file size, blank, path and NUL; they come as stdout. Nothing of ours
# is among them. Where find has no -printf, each size is asked for by a process of its own.
# include prologue.sh
# include path.sh
path "$2"
[ ! "$_cs_v" ] || cd -- "$_cs_v" || tell nodir
_cs_o='.cloudsandbox-????????????????????????????????*'
files() {
  if find . -maxdepth 0 -printf x >/dev/null; then
    find . -name "$_cs_o" -prune -o -type f -printf '%s %p\0'
  else
    # shellcheck disable=SC2016
    find . -name "$_cs_o" -prune -o -type f -exec /bin/sh -c \
      'for _cs_f do printf "%s %s\0" $(($(wc -c <"$_cs_f"))) "$_cs_f"; done' sh {} +
  fi
}
printf '\n%s\n' "$_cs_tag ran 0 0 $3 0 0 0 0"
files | head -c "$3" | base64 | tr -d '\n'
printf '\n\n\n\n%s end\n' "$_cs_tag"

# shellcheck shell=sh
# program: reads a file. $1 tag, $2 its path in base64, $3 most bytes.
#
# The report's stdout is the file, its first size the file's; "absent" when there is none, and "nodir" for what is
# no regular file.
# include prologue.sh
# include report.sh
# include path.sh
path "$2"
if [ ! -e "$_cs_v" ]; then
  # One below a file is not missing but wrong.
  _cs_d=$_cs_v
  while [ "$_cs_d" ] && [ ! -e "$_cs_d" ]; do _cs_d=${_cs_d%/*}; done
  [ ! "$_cs_d" ] || [ -d "$_cs_d" ] || tell nodir
  tell absent
fi
[ -f "$_cs_v" ] || tell nodir
if ! true <"$_cs_v"; then tell nodir; fi
# A file of /proc has no size, and may be another one at each reading: it is read once.
if [ -s "$_cs_v" ]; then
  _cs_n=$(($(wc -c <"$_cs_v")))
else
  _cs_c=$(head -c "$(($3 + 1))" <"$_cs_v" | code)
  _cs_n=$(($(printf %s "$_cs_c" | base64 -d | wc -c)))
fi
if [ "$_cs_n" -gt "$3" ]; then
  printf '\n%s\n\n\n\n\n%s end\n' "$_cs_tag going 0 0 $_cs_n 0 0 0 0" "$_cs_tag"
  exit
fi
printf '\n%s\n' "$_cs_tag ran 0 0 $_cs_n 0 0 0 0"
if [ -s "$_cs_v" ]; then head -c "$_cs_n" <"$_cs_v" | code; else printf %s "$_cs_c"; fi
printf '\n\n\n\n%s end\n' "$_cs_tag"

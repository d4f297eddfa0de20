#!/bin/sh
# embed.sh [-o FILE] FOLDER: writes a C header with the shell programs of FOLDER, its files that begin with
# "# program": each as it is given to sh ("plain"), and as it stands between single quotes inside a JSON
# string ("quoted"), which is what most wires take, so that it need not be escaped for each command.
# embed.sh -p FILE: prints one program, whole, for tests and shellcheck.
#
# A line "# include FILE" is replaced by that file of the same folder. Comments, indentation and empty lines are
# left out of the header, so no text with line ends may need them.
set -eu
plain=0
case $1 in
-o) exec >"$2" && shift 2 ;;
-p) plain=1 && shift ;;
esac
if [ "$plain" = 1 ]; then
  folder=${1%/*}
  set -- "${1##*/}"
else
  folder=$1
  cd "$folder"
  folder=.
  # shellcheck disable=SC2046
  set -- $(grep -l '^# program' -- *.sh)
fi
awk -v folder="$folder" -v plain="${plain:-0}" '
  # Character by character: what gsub makes of backslashes differs between versions of awk.
  function escape(text,    i, c, out) {
    for (i = 1; i <= length(text); i++) {
      c = substr(text, i, 1)
      out = out (c == "\\" || c == "\"" ? "\\" c : c)
    }
    return out
  }
  function quote(text,    i, c, out) {
    for (i = 1; i <= length(text); i++) {
      c = substr(text, i, 1)
      out = out (c == "\047" ? "\047\\\047\047" : c)
    }
    return out
  }
  function put(line, quoted) {
    if (plain) { print line; return }
    sub(/^[ \t]+/, "", line)
    if (line == "" || line ~ /^#/) return
    if (quoted) line = escape(quote(line)) "\\n"
    printf "    \"%s%s\"\n", escape(line), quoted ? "" : "\\n"
  }
  function add(file, quoted,    line, status) {
    while ((status = (getline line < file)) > 0) {
      if (line ~ /^# include /) { sub(/^# include /, "", line); add(folder "/" line, quoted) }
      else put(line, quoted)
    }
    close(file)
    if (status < 0) { print "embed.sh: cannot read " file > "/dev/stderr"; exit 1 }
  }
  BEGIN {
    if (!plain) {
      print "/* Made by scripts/embed.sh. */"
      print "#pragma GCC diagnostic ignored \"-Woverlength-strings\""
    }
    for (i = 1; i < ARGC; i++) {
      file = folder "/" ARGV[i]
      if (plain) { add(file, 0); continue }
      name = substr(ARGV[i], 1, length(ARGV[i]) - 3)
      printf "static const char plain_%s[] =\n", name; add(file, 0); print "    \"\";"
      printf "static const char quoted_%s[] =\n", name; add(file, 1); print "    \"\";"
    }
  }' "$@"

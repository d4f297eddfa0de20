#!/bin/sh
# embed.sh [-o FILE] FOLDER: writes a C header with the shell programs of FOLDER, its files that begin with
# "# program": each as it is given to sh ("plain"), as that stands in a JSON string ("json"), and as it stands
# between single quotes inside a JSON string ("quoted"), so that it need not be escaped for each command.
# embed.sh -p FILE: prints one program, whole, for tests and shellcheck.
#
# A line "# include FILE" is replaced by that file of the same folder. Comments, indentation and empty lines are
# left out of the header, so no text with line ends may need them. Variables begin with "_cs_" in the sources, and
# with "__" in what is made of them: they are many, and go along with every command.
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
  function put(line, form) {
    gsub(/_cs_/, "__", line)
    if (plain) { print line; return }
    sub(/^[ \t]+/, "", line)
    if (line == "" || line ~ /^#/) return
    if (form == "quoted") line = quote(line)
    if (form != "plain") line = escape(line) "\\n"
    printf "    \"%s%s\"\n", escape(line), form == "plain" ? "\\n" : ""
  }
  function add(file, form,    line, status) {
    while ((status = (getline line < file)) > 0) {
      if (line ~ /^# include /) { sub(/^# include /, "", line); add(folder "/" line, form) }
      else put(line, form)
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
      if (plain) { add(file); continue }
      name = substr(ARGV[i], 1, length(ARGV[i]) - 3)
      for (f = split("plain json quoted", forms, " "); f > 0; f--) {
        printf "static const char %s_%s[] =\n", forms[f], name; add(file, forms[f]); print "    \"\";"
      }
    }
  }' "$@"

#!/bin/sh
# Compiles each header of the C core alone, twice in a row, as C17, and the public one as C++17 too,
# with warnings as errors. Run from the project's root; CC and CXX choose the compilers.
set -eu

warnings='-Wall -Wextra -Wpedantic -Wshadow -Wundef -Wconversion -Wstrict-prototypes -Werror'

check() {
  header=${2#src/}
  printf '#include "%s"\n#include "%s"\nextern int one_declaration;\n' "$header" "$header" |
    $1 -Isrc -D_GNU_SOURCE -fsyntax-only - || {
    echo "$2 does not compile alone with: $1" >&2
    exit 1
  }
}

count=0
for header in src/*.h src/core/*.h src/guard/*.h src/sandbox/*.h src/providers/*.h src/providers/*/*.h src/providers/*/*/*.h; do
  check "${CC:-cc} -x c -std=c17 $warnings" "$header"
  count=$((count + 1))
done
check "${CXX:-c++} -x c++ -std=c++17 $(echo "$warnings" | sed 's/-Wstrict-prototypes//')" src/sbx.h
echo "$count headers compile alone"

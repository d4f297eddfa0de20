#!/bin/sh
# run.sh DIR TEST... : runs the test programs of DIR one after another, "name:argument" with an argument.
# One line for each; everything that it wrote when it fails. What cmocka says of the last one stands
# below them. The sums of tests that passed and failed go to DIR/totals.
dir=$1
shift
passed=0 failed=0
log=$dir/run.log

# sum WORD: how many tests the log says have PASSED or FAILED.
sum() { awk -v word="$1" '$2 == word && $4 ~ /^[0-9]+$/ { n += $4 } END { print n + 0 }' "$log"; }

for item in "$@"; do
  name=${item%%:*}
  argument=${item#"$name"}
  "$dir/$name" ${argument:+"${argument#:}"} >"$log" 2>&1
  status=$?
  good=$(sum PASSED) bad=$(sum FAILED)
  # A program that crashes has no closing lines.
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
  label=$name${argument:+ (${argument#:})}
  if [ "$bad" -gt 0 ]; then
    cat "$log"
    echo "$label: $good passed, $bad failed (exit code $status)"
  else
    echo "$label: $good passed"
  fi
  passed=$((passed + good)) failed=$((failed + bad))
done
if [ "$failed" -eq 0 ]; then grep -E '^\[(==========\] [0-9]|  PASSED  )' "$log"; fi
echo "C: $passed passed, $failed failed"
echo "$passed $failed" >"$dir/totals"
[ "$failed" -eq 0 ]

# shellcheck shell=sh
# program: the first process of a container, which ends with it. $1 how many seconds it lives.
#
# As the first process it cannot be killed from inside, and it collects those whose parents have ended. What it
# starts itself can be killed: then it does that anew.
now() {
  for _cs_n in 1 2 3 4 5 6 7 8 9; do
    if _cs_now=$(date +%s) && [ "$_cs_now" ]; then return; fi
  done
  exit 1
}
now
_cs_end=$((_cs_now + $1))
while [ "$_cs_now" -lt $_cs_end ]; do
  sleep $((_cs_end - _cs_now)) &
  wait $!
  now
done

# shellcheck shell=sh
# program: the first process of a container, which ends with it. $1 how many seconds it lives.
#
# As the first process it cannot be killed from inside, and it collects those whose parents have ended. What it waits
# with can be killed: then it waits anew.
_cs_end=$(($(date +%s) + $1))
while
  _cs_n=$((_cs_end - $(date +%s)))
  [ $_cs_n -gt 0 ]
do
  sleep $_cs_n &
  wait $!
done

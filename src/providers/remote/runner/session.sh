# shellcheck shell=sh
# session WORD...: becomes that program, in a session of its own where there is setsid.
session() {
  for _cs_f in /usr/bin /bin /usr/local/bin; do
    [ ! -x $_cs_f/setsid ] || exec $_cs_f/setsid "$@"
  done
  exec "$@"
}

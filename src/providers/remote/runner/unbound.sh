# shellcheck shell=sh
# For wires that keep the limit, and know the directory.
_cs_plain=''
watch() { :; }
ended() { :; }
over() { tell "$1"; }
# include wrap.sh

# One more process than is needed: a service that keeps the limit itself kills the first one, with which the trace to a
# command that has cleared its environment would be lost.
unbound() {
  (wrap "$@")
  exit "$?"
}

# shellcheck shell=sh
# How code is begun.
# include launch_code.sh

# Code is a file beside the user's, whose name nobody knows. Where there can be none, it is the text itself, or the
# file that it came in.
prepare() {
  case $5 in
  python) _cs_main=$PWD/.cloudsandbox-$CLOUDSANDBOX_CALL.py ;;
  *) _cs_main=$PWD/.cloudsandbox-$CLOUDSANDBOX_CALL.js ;;
  esac
  if [ "$3" ]; then PATH=$PATH:/usr/bin:/bin cat -- "$3" >"$_cs_main"; else printf %s "$6" >"$_cs_main"; fi ||
    { clean "$_cs_main" && _cs_main=$3; }
}
start() { launch "$5" "$_cs_main" "$6"; }

# shellcheck shell=sh
# program: runs code; its words stand in wrap.sh.
# include begin_code.sh
# include unbound.sh
unbound "$@"

# shellcheck shell=sh
# program: runs the command line of a shell, or words; its own words stand in wrap.sh.
# include begin_shell.sh
# include unbound.sh
unbound "$@"

# shellcheck shell=sh
# program: runs the command line of a shell, or words, for wires that keep no limit; its words stand in bound.sh.
# include begin_shell.sh
# include bound.sh
bound "$@"

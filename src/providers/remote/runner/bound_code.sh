# shellcheck shell=sh
# program: runs code for wires that keep no limit; its words stand in bound.sh.
# include begin_code.sh
# include bound.sh
bound "$@"

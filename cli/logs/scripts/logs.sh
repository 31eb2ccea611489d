# shellcheck shell=bash disable=SC2154
# Prints a job's log, whole or its last lines. Defined before: answer, state, log (where the killfile has it), lines
# (empty: all).
file=$state/log
[ -e "$file" ] || file=$log
[ -e "$file" ] || { answer error "there is no log: $log"; exit 1; } >&2
if [ -n "$lines" ]; then exec tail -n "$lines" -- "$file"; else exec cat -- "$file"; fi

# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# One machine's part of a run whose processes mpirun starts: becomes the program that waits for those of this machine, and ends
# as they do (ssh/host/session/rank.h). On machine 0 start_mpirun (from mpirun.sh, which comes before this) starts mpirun.
# Defined before: by the numbers state, attempt, place, first_rank; slots_of (array, by place); by the session DTOOL_HOST (its
# program).
# Numbers by the plan and the numbers: place slots_of.
export -n DTOOL_HOST
mpirun=0
[ "$place" != 0 ] || start_mpirun
: > "$state/begun"
exec -a dtool-host "$DTOOL_HOST" keep "$state" "$attempt" "$first_rank" "${slots_of[place]}" "$mpirun"

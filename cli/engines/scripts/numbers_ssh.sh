# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# The numbers of a machine that its own session looks after. Arguments: the attempt (0: the first start), and the places of the
# machines that take part in it (none: all). Defined before: place (this machine's among those of the run), processes_of (array,
# by place), rank (of one process that mpirun has started; or empty). Runs in the job's state folder. Follows words.sh;
# environment.sh comes next. Where visit is set (ssh/host/session/session.h), its words take the place of the program: they are no
# process of the run, and nothing is written into its state folder. They find the numbers of the attempt in the file numbers.
# Numbers by the plan: place processes_of.
attempt=${1:-0}
members=("${@:2}")
[ ${#members[@]} != 0 ] || members=("${!processes_of[@]}")
refuse_unless_numbers "$attempt" "${members[@]}"
# Ranks and machine ids have no gaps, whichever machines were left out.
machines=${#members[@]} world_size=0 processes=${processes_of[place]}
for ((i = 0; i < machines; i++)); do
  [ "${members[i]}" != "$place" ] || machine_id=$i first_rank=$world_size
  ((world_size += processes_of[members[i]]))
done
state=$PWD
if [ -z "$rank${visit+set}" ]; then
  echo "$first_rank" > first_failure  # until another one is known to have failed first
  echo "$attempt ${members[*]}" > numbers
fi

# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# The numbers of one process that a scheduler has started, and its output into its machine's log, or the file of its rank
# that dtool-host names (DTOOL_RANK_LOG). Arguments, by `dtool-host rank`
# (ssh/host/session/rank.h): as below. Defined before: output (path), log_mark, seeds and parts (arrays, one for each member of a job array),
# trainer, code, tree. environment.sh comes next.
# Numbers by dtool-host: place local_rank task.
run=$1 attempt=$2 listener=$3 port=$4 task=$5 place=$6
machines=$7 machine_id=$8 rank=$9 local_rank=${10} world_size=${11} processes=${12} node=${13}
seed=${seeds[task]} output=$output${parts[task]} state=$run/machine$place
case $listener in
  *:*) listener_and_port="[$listener]:$port" ;;
  *) listener_and_port=$listener:$port ;;
esac
mkdir -p "$output"
exec >> "${DTOOL_RANK_LOG:-$output/machine$place$log_mark.log}" 2>&1
unset DTOOL_RANK_LOG
((local_rank != 0)) || echo "$node" > "$state/node"
# A program's code is there on the host that took the job; environment.sh would make an empty folder of its name.
# The run's own tree is beside the state, which all nodes see.
if [ -z "$trainer$tree" ] && [ ! -d "$code" ]; then
  echo "dtool: ${node:-$(hostname)} does not see the code folder $code: --code_path names one that all nodes see"
  exit 1
fi

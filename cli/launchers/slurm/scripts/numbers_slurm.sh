# shellcheck shell=bash disable=SC2034,SC2154
# The numbers of one process that srun has started, and its output into its machine's log. Arguments: the run's folder, the
# attempt (0: the first start), address and port of rank 0. Defined before: output (path), nodes (of the job), seeds and
# parts (arrays, one for each member of a job array), trainer, code. Follows words.sh; environment.sh comes next.
# Numbers by the plan: nodes.
run=$1 attempt=$2 listener=$3 port=$4
export DTOOL_RUN_ID=${run##*/}  # srun hands on no variables where sbatch or the environment said --export=NONE
task=0
[ ${#parts[@]} = 1 ] || task=$SLURM_ARRAY_TASK_ID
refuse_unless_numbers "$attempt" "$port" "$task" "$SLURM_STEP_NUM_NODES" "$SLURM_NODEID" "$SLURM_PROCID" "$SLURM_LOCALID" "$SLURM_STEP_NUM_TASKS"
seed=${seeds[task]} output=$output${parts[task]}
machines=$SLURM_STEP_NUM_NODES machine_id=$SLURM_NODEID rank=$SLURM_PROCID local_rank=$SLURM_LOCALID
place=$((task * nodes + machine_id))
world_size=$SLURM_STEP_NUM_TASKS processes=''
# How many there are on this node, in Slurm's words: `3,1(x2)`. In an allocation it deals them out by its processors, whatever is asked.
i=0
for item in ${SLURM_STEP_TASKS_PER_NODE//,/ }; do
  case $item in
    *x*) item_nodes=${item#*x} item_nodes=${item_nodes%)} ;;
    *) item_nodes=1 ;;
  esac
  refuse_unless_numbers "$item_nodes" "${item%%(*}"
  ((i += item_nodes))
  if ((machine_id < i)); then processes=${item%%(*}; break; fi
done
case $listener in
  *:*) listener_and_port="[$listener]:$port" ;;
  *) listener_and_port=$listener:$port ;;
esac
state=$run/machine$place
mkdir -p "$output"
exec >> "$output/machine$place.log" 2>&1 < /dev/null
# The job's script puts the machine's exit code together from its processes'.
told=''
record_end() { printf '%s %s\n' "$1" "$told" > "$state/ranks/$rank.new" && mv -f "$state/ranks/$rank.new" "$state/ranks/$rank"; }
trap 'record_end "$?"' EXIT
trap 'told=told; exit 143' TERM
((local_rank != 0)) || echo "${SLURMD_NODENAME-}" > "$state/node"
# A program's code is there on the host that took the job; environment.sh would make an empty folder of its name.
if [ -z "$trainer" ] && [ ! -d "$code" ]; then
  echo "dtool: ${SLURMD_NODENAME:-$(hostname)} does not see the code folder $code: --code_path names one that all nodes see"
  exit 1
fi

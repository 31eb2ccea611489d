# shellcheck shell=bash disable=SC2034,SC2154
# The numbers of one process that a scheduler has started; its output goes to its machine's log. Arguments: the run's folder,
# the attempt (0: the first start), address and port of rank 0, and the arguments of the scheduler's place_process. Defined
# before: output (path), nodes (of the job), seeds and parts (arrays, one for each member of a job array), trainer, code, and
# the scheduler's functions. Follows words.sh; environment.sh comes next.
# Numbers by the plan: nodes.
run=$1 attempt=$2 listener=$3 port=$4
export DTOOL_RUN_ID=${run##*/}  # the scheduler may have been told to pass on no variables
task=0 processes='' told=''
[ ${#parts[@]} = 1 ] || job_task
place_process "${@:5}"
refuse_unless_numbers "$attempt" "$port" "$task" "$machines" "$machine_id" "$rank" "$local_rank" "$world_size"
seed=${seeds[task]} output=$output${parts[task]}
place=$((task * nodes + machine_id))
case $listener in
  *:*) listener_and_port="[$listener]:$port" ;;
  *) listener_and_port=$listener:$port ;;
esac
state=$run/machine$place
mkdir -p "$output"
exec >> "$output/machine$place.log" 2>&1 < /dev/null
# The job's script computes the machine's exit code from those of its processes.
record_end() { printf '%s %s\n' "$1" "$told" > "$state/ranks/$rank.new" && mv -f "$state/ranks/$rank.new" "$state/ranks/$rank"; }
trap 'record_end "$?"' EXIT
trap 'told=told; exit 143' TERM
((local_rank != 0)) || echo "$node" > "$state/node"
# A program's code exists on the login host; if it is missing here, environment.sh would make an empty folder of its name.
if [ -z "$trainer" ] && [ ! -d "$code" ]; then
  echo "dtool: ${node:-$(hostname)} does not see the code folder $code: --code_path names one that all nodes see"
  exit 1
fi

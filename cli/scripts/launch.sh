# shellcheck shell=bash disable=SC2154
# One machine's part of a run; runs in the job's state folder. Arguments: the attempt (0: the first start), and the
# places of the machines that take part in it (none: all). Defined before: code, activate, output (paths; activate may
# be empty), listener, port, listener_and_port (both, as one word), place (this machine's among those of the run), processes_of (array, by place), seed,
# max_restarts, export_variables (a function), trainer (empty: a program of the user's), program (array).
attempt=${1:-0}
members=("${@:2}")
[ ${#members[@]} != 0 ] || members=("${!processes_of[@]}")
# Ranks and machine ids have no gaps, whichever machines were left out.
machines=${#members[@]} world_size=0 processes=${processes_of[place]}
for ((i = 0; i < machines; i++)); do
  [ "${members[i]}" != "$place" ] || machine_id=$i first_rank=$world_size
  ((world_size += processes_of[members[i]]))
done
state=$PWD
echo "$first_rank" > first_failure  # until another one is known to have failed first
# start.sh waits for `begun`, or for `fault` and why nothing begins.
give_up() {  # $1: exit code, $2: why
  echo "dtool: $2" >&2
  echo "$2" > "$state/fault"
  exit "$1"
}
mkdir -p "$code"
cd "$code" || give_up 1 "cannot enter $code"
mkdir -p "$output" || give_up 1 "cannot make $output"
if [ -n "$activate" ]; then
  # shellcheck source=/dev/null
  . "$activate" || give_up 1 "$activate failed"
fi
export DTOOL_MACHINE_ID=$machine_id DTOOL_SEED=$seed DTOOL_OUTPUT_DIR=$output DTOOL_ATTEMPT=$attempt
export TORCHELASTIC_RESTART_COUNT=$attempt TORCHELASTIC_MAX_RESTARTS=$max_restarts
[ ! -e "$state/experiment.toml" ] || export DTOOL_EXPERIMENT=$state/experiment.toml
export PYTHONUNBUFFERED=1  # a log that lags behind is no log

# The interface by which this machine reaches the listener. On the listener's own machine that is the one that has its
# address: the route to oneself is lo, and peers told lo's address would reach themselves.
interface() {
  local address
  address=$(getent ahosts "$listener" 2> /dev/null | awk 'NR == 1 { print $1 }')
  if ((machine_id == 0)); then
    ip -o addr show 2> /dev/null | awk -v prefix="${address:-$listener}/" 'index($4, prefix) == 1 { print $2; exit }'
  else
    ip -o route get "${address:-$listener}" 2> /dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p'
  fi
}
if [ "$machines" -gt 1 ]; then
  found=$(interface)
  if [ -n "$found" ] && [ "$found" != lo ]; then export NCCL_SOCKET_IFNAME=$found GLOO_SOCKET_IFNAME=$found; fi
fi
export_variables  # what the user gave wins
if [ -z "$trainer" ] && ! type -P -- "${program[0]}" > /dev/null; then
  [ ! -f "${program[0]}" ] || give_up 126 "${program[0]} may not be executed: chmod +x, or name the program that reads it first"
  give_up 127 "${program[0]}: no such program on this host"
fi
: > "$state/begun"

if [ -n "$trainer" ]; then
  resume=()
  ((attempt == 0)) || resume=(--checkpoint auto)
  exec "$trainer" "$state/experiment.toml" --machine_id "$machine_id" --distributed_nodes "$machines" \
    --nproc_per_node "$processes" --distributed_ip_and_port "$listener_and_port" --seed "$seed" --output_dir "$output" "${resume[@]}"
fi
export MASTER_ADDR=$listener MASTER_PORT=$port WORLD_SIZE=$world_size LOCAL_WORLD_SIZE=$processes GROUP_RANK=$machine_id
if [ "$processes" = 1 ]; then
  RANK=$first_rank LOCAL_RANK=0 exec "${program[@]}"
fi

pids=()
for ((i = 0; i < processes; i++)); do
  RANK=$((first_rank + i)) LOCAL_RANK=$i "${program[@]}" < /dev/null &
  pids+=("$!")
done
end_all() { kill -TERM "${pids[@]}" 2> /dev/null; }
trap end_all TERM INT
code=0
for ((left = processes; left > 0; left--)); do
  wait -n
  ended=$?
  [ "$ended" = 127 ] && break  # no child is left to wait for
  if [ "$ended" != 0 ] && [ "$code" = 0 ]; then
    code=$ended
    for ((i = 0; i < processes; i++)); do
      kill -0 "${pids[i]}" 2> /dev/null && continue
      wait "${pids[i]}"
      [ $? = "$code" ] || continue
      echo $((first_rank + i)) > "$state/first_failure"
      echo "dtool: rank $((first_rank + i)) on machine $place ended with exit code $code;" \
        "the others of this machine are ended too" >&2
      break
    done
    end_all
    (sleep 5; kill -KILL "${pids[@]}" 2> /dev/null) &
  fi
done
exit "$code"

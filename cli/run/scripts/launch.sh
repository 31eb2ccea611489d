# shellcheck shell=bash disable=SC2154
# Starts all processes of one machine, and ends them when one fails. Defined before: what numbers_ssh.sh and environment.sh
# have, and by the plan listener, port and listener_and_port (both, as one word).
# Numbers by the plan and the numbers: attempt first_rank processes.
: > "$state/begun"

if [ -n "$trainer" ]; then
  resume=()
  ((attempt == 0)) || resume=(--checkpoint auto)
  exec "${inside[@]}" "$trainer" "$state/experiment.toml" --machine_id "$machine_id" --distributed_nodes "$machines" \
    --nproc_per_node "$processes" --distributed_ip_and_port "$listener_and_port" --seed "$seed" --output_dir "$output" "${resume[@]}"
fi
export MASTER_ADDR=$listener MASTER_PORT=$port WORLD_SIZE=$world_size LOCAL_WORLD_SIZE=$processes GROUP_RANK=$machine_id
if [ "$processes" = 1 ] || [ "$torchrun" = yes ]; then
  RANK=$first_rank LOCAL_RANK=0 exec "${inside[@]}" "${program[@]}"
fi

pids=()
for ((i = 0; i < processes; i++)); do
  RANK=$((first_rank + i)) LOCAL_RANK=$i "${inside[@]}" "${program[@]}" < /dev/null &
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

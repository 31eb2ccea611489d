# shellcheck shell=bash disable=SC2154
# Becomes the program that starts all processes of one machine and ends as they do (cli/run/host/ranks.h). Defined before: the
# variables of numbers_ssh.sh and environment.sh, by the plan listener and port, and by the session DTOOL_HOST (its program).
# Numbers by the plan and the numbers: attempt first_rank processes place.
: > "$state/begun"
export MASTER_ADDR=$listener MASTER_PORT=$port WORLD_SIZE=$world_size LOCAL_WORLD_SIZE=$processes GROUP_RANK=$machine_id
export -n DTOOL_HOST
words=("${inside[@]}" "${program[@]}")
if [ -n "$trainer" ]; then
  words=("${inside[@]}" "$trainer" "$state/experiment.toml" --seed "$seed" --output_dir "$output")
  ((attempt == 0)) || words+=(--checkpoint auto)
fi
if [ "$torchrun" = yes ]; then RANK=$first_rank LOCAL_RANK=0 exec "${words[@]}"; fi
exec -a dtool-host "$DTOOL_HOST" ranks "$state" "$attempt" "$place" "$first_rank" "$processes" "${words[@]}"

# shellcheck shell=bash disable=SC2154,SC2317
# One process of a run that a launcher starts a process at a time: becomes the parent of the program, hands signals on to it,
# and ends as it does. Defined before: by the numbers attempt, state, rank, local_rank, machine_id, world_size, processes, and
# where the launcher needs them apart (array: words before all others) and kept_rank (the file where this process is noted); by
# the plan trainer, program, listener, port, seed, output; by the environment inside (words before the program). Sets told
# where the launcher told this process to end.
# Numbers by the numbers: attempt.
export MASTER_ADDR=$listener MASTER_PORT=$port WORLD_SIZE=$world_size LOCAL_WORLD_SIZE=$processes GROUP_RANK=$machine_id
export RANK=$rank LOCAL_RANK=$local_rank
words=("${inside[@]}" "${program[@]}")
if [ -n "$trainer" ]; then
  words=("${inside[@]}" "$trainer" "$state/experiment.toml" --seed "$seed" --output_dir "$output")
  ((attempt == 0)) || words+=(--checkpoint auto)
fi

# Only the trainer leaves words, and a session alone reads them.
if [ -n "${kept_rank-}" ] && [ -e "$state/supervise" ]; then export DTOOL_LAST_WORDS=$state/last_words.$attempt.$rank; fi

hand_on() {  # $1: signal
  if [ "$1" != USR1 ]; then
    [ -z "$told" ] || return  # once is enough for what writes a checkpoint then
    told=told
    [ -z "${kept_rank-}" ] || : > "$kept_rank.told"
  fi
  [ -z "$child" ] || kill "-$1" "$child" 2> /dev/null
}
child=''
for signal in TERM INT USR1; do
  # shellcheck disable=SC2064
  trap "hand_on $signal" "$signal"
done
# Bash has what it runs aside ignore Ctrl-C otherwise.
(trap - INT QUIT; exec "${apart[@]}" "${words[@]}") < /dev/null &
child=$!
[ -z "${kept_rank-}" ] || echo "$child" > "$kept_rank.program"
[ -z "$told" ] || kill -TERM "$child"
# A signal for this process ends the wait as well; its program may go on then. Bash's own word on a killed one is no output.
{
  while kill -0 "$child"; do
    wait "$child"
    code=$?
  done
  wait "$child"
  after=$?
} 2> /dev/null
[ "$after" = 127 ] || code=$after
# Who ends all processes of a host one by one may meet the program a moment before this one.
if ((code > 128)) && [ -z "$told" ]; then
  sleep 0.3 &
  wait $!
fi
exit "$code"

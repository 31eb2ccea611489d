# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Runs torchrun as one machine's part of a run; environment.sh uses it. torchrun tells on stderr which of its ranks failed
# first and how, and ends with 1 whatever that was; before version 2.1 only after it has waited five minutes for the other
# machines'. Its words are listened to, so that the run ends at once and for the right reason.
# Numbers by the plan, the numbers and patterns: machine_id attempt place processes_of rank code local_rank.

# Sets program to torchrun with the machine's place in the run and the words of program.
wrap_in_torchrun() {
  keep_rank_logs
  if [[ ${program[0]} == --no[_-]python && ${program[1]:--} != -* && -x $state/torchrun_rank ]]; then
    program=(--no_python "$state/torchrun_rank" --no_python "${program[@]:1}")
  fi
  # The static kind of meeting gives each machine the ranks that belong to its id. Starting again is left to dtool.
  set -- --nnodes "$machines" --node_rank "$machine_id" --nproc_per_node "${processes_of[place]}" --rdzv_backend static \
    --rdzv_endpoint "$listener_and_port" --max_restarts 0 "${program[@]}"
  # shellcheck disable=SC2016
  program=(bash -c "$(declare -f run_torchrun hear_failure)"' && run_torchrun "$@"' bash "$state" "${first_rank:-$((machine_id * processes_of[place]))}" "$place"
    "${inside[@]}" sh -c 'for python in torchrun python3 python; do command -v "$python" > /dev/null && break; done
[ "$python" = torchrun ] || set -- -m torch.distributed.run "$@"
[ ! -x "$0" ] || export DTOOL_PYTHON_EXEC="${PYTHON_EXEC-}" PYTHON_EXEC="$0"
exec "$python" "$@"' "$state/torchrun_rank" "$@")
  inside=()  # torchrun is, and not what listens to it
}

# Has each rank write into a log of its own, too, as rank_log.h names it: torchrun starts this in place of its Python, or,
# after --no_python, of the program. Then the rank's own last line is told from the others'. It may run in a container that has
# little but sh. Where it cannot give the rank a log, it becomes the other all the same.
keep_rank_logs() {
  local folder again='' own=$state/torchrun_rank
  folder=$(readlink -- "$state/log") && folder=${folder%.log}.ranks && mkdir -p -- "$folder" || return 0
  ((attempt == 0)) || again=.attempt$((attempt + 1))
  folder=\'${folder//\'/\'\\\'\'}\'
  # shellcheck disable=SC2016
  printf '%s\n' '#!/bin/sh' "folder=$folder"' python=$DTOOL_PYTHON_EXEC pipe=$0.$RANK' \
    'if [ -n "$python" ]; then export PYTHON_EXEC="$python"; else unset PYTHON_EXEC; python=$(tr "\0" "\n" < "/proc/$PPID/cmdline" | head -n 1); fi' \
    'unset DTOOL_PYTHON_EXEC' 'if [ -w "$folder" ] && command -v tee > /dev/null && mkfifo "$pipe"; then' \
    "  (trap '' HUP INT TERM USR1 USR2; exec tee -a -- \"\$folder/r\$RANK$again.log\" < \"\$pipe\") &" \
    '  exec > "$pipe" 2>&1' '  rm -f "$pipe"' 'fi' 'if [ "$1" = --no_python ]; then shift; else set -- "${python:-python3}" "$@"; fi' 'exec "$@"' > "$own" && chmod +x "$own"
  true  # where it is not whole, or may not be executed, torchrun starts its Python
}

# Hears the first failure in what torchrun says, notes it in $1 and tells $2.
hear_failure() {
  grep --line-buffered -oE 'failed \(exitcode: -?[0-9]+\) local_rank: [0-9]+' | {
    IFS=' :)' read -r _ _ code _ local_rank && echo "$code $local_rank" > "$1" && kill -USR2 "$2"
    cat > /dev/null
  }
}

run_torchrun() {  # $1: state folder, $2: the machine's first rank, $3: its place, $4...: the command
  local state=$1 rank=$2 place=$3 heard=$1/torchrun_said.$$ torchrun listener code local_rank line i
  shift 3
  trap 'kill -TERM "$torchrun"' TERM INT
  trap 'pkill -USR1 -P "$torchrun"' USR1  # to the ranks: torchrun itself would die of it
  # It has ended its other ranks by then, and waits inside a call that hears no other signal.
  trap '(sleep 5; kill -KILL "$torchrun" 2> /dev/null) &' USR2
  exec 3> >(tee -a /dev/fd/2 | hear_failure "$heard" $$)
  listener=$!
  "$@" 2>&3 3>&- < /dev/null &
  torchrun=$!
  exec 3>&-
  # A signal ends the wait, too. If a signal ended torchrun, bash would say so on stderr, and that is not the program's last line.
  while wait "$torchrun" 2> /dev/null; code=$?; kill -0 "$torchrun" 2> /dev/null; do :; done
  [ "$code" != 0 ] || exit 0
  # What the ranks left behind may hold its pipe.
  for ((i = 0; i < 20; i++)); do
    kill -0 "$listener" 2> /dev/null || break
    sleep 0.1
  done
  read -r line 2> /dev/null < "$heard" || exit "$code"
  rm -f "$heard"
  [[ $line =~ ^(-?)0*([0-9]{1,3})\ 0*([0-9]{1,6})$ ]] || exit "$code"
  code=${BASH_REMATCH[1]}${BASH_REMATCH[2]} local_rank=${BASH_REMATCH[3]}
  ((code >= 0)) || code=$((128 - code))
  echo $((rank + local_rank)) > "$state/first_failure"
  echo "dtool: rank $((rank + local_rank)) on machine $place ended with exit code $code" >&2
  exit "$code"
}

# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Becomes the program where `dtool-host rank` has started this for one rank (ssh/host/session/rank.h); else the one that starts all
# processes of one machine and ends as they do (ssh/host/session/rank.h). Defined before: what the numbers and environment.sh have,
# by the plan listener, port, nice (or empty), rendezvous (env, never or independent), fill (yes or no) and threads (of each process, or empty), and by dtool-host DTOOL_HOST (itself).
# Numbers by the plan and the numbers: attempt first_rank processes place threads world_size.
case $rendezvous in
  env)
    export MASTER_ADDR=$listener MASTER_PORT=$port WORLD_SIZE=$world_size LOCAL_WORLD_SIZE=$processes GROUP_RANK=$machine_id
    export NODE_RANK=$machine_id GROUP_WORLD_SIZE=$machines ROLE_WORLD_SIZE=$world_size TORCHELASTIC_RUN_ID=$DTOOL_RUN_ID
    export JAX_COORDINATOR_ADDRESS=${JAX_COORDINATOR_ADDRESS:-$listener_and_port}
    ;;
  independent)  # port 0 is a free one
    export MASTER_ADDR=127.0.0.1 MASTER_PORT=0 WORLD_SIZE=1 LOCAL_WORLD_SIZE=1 GROUP_RANK=0
    export NODE_RANK=0 GROUP_WORLD_SIZE=1 ROLE_WORLD_SIZE=1
    ;;
  never)
    unset MASTER_ADDR MASTER_PORT WORLD_SIZE RANK LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK NODE_RANK GROUP_WORLD_SIZE \
      ROLE_RANK ROLE_WORLD_SIZE TORCHELASTIC_RUN_ID TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS JAX_COORDINATOR_ADDRESS
    ;;
esac
# Each rank would start a thread for each core. What the user, the environment or the container set counts.
if [ -z "$trainer" ] && [ -n "$threads" ] && [ -z "${OMP_NUM_THREADS-}" ]; then
  # mpirun may have bound this rank to a part of the cores.
  if [ -n "$rank" ] && cores=$(nproc) && is_number "$cores" && ((cores < threads)); then threads=$cores; fi
  export OMP_NUM_THREADS=$threads
fi
export -n DTOOL_HOST
# Replaces placeholders in the words of a process of the rank $rank; without one dtool-host replaces those of ranks. Sets
# filled (array).
fill_words() {
  local word
  filled=()
  for word; do
    if [ "$fill" = yes ]; then
      word=${word//'{world_size}'/"$world_size"}
      word=${word//'{machine_id}'/"$machine_id"}
      word=${word//'{machines}'/"$machines"}
      word=${word//'{listener}'/"$listener_and_port"}
      word=${word//'{ip}'/"$listener"}
      word=${word//'{port}'/"$port"}
      word=${word//'{seed}'/"$seed"}
      word=${word//'{run_id}'/"$DTOOL_RUN_ID"}
      if [ -n "$rank" ]; then word=${word//'{rank}'/"$rank"} word=${word//'{local_rank}'/"$local_rank"}; fi
      word=${word//'{output_dir}'/"$output"}
    fi
    filled+=("$word")
  done
}
fill_words "${program[@]}"
words=("${inside[@]}" "${filled[@]}")
if [ -n "$trainer" ]; then
  words=("${inside[@]}" "$trainer" "$state/experiment.toml" --seed "$seed" --output_dir "$output")
  if ((attempt > 0)); then words+=(--checkpoint auto); elif [ "$is_resumed" = yes ]; then words+=(--checkpoint latest); fi
fi
# All that it becomes and starts has it. Only root may go back from a higher niceness.
[ -z "$nice" ] || renice "$nice" -p $$ > /dev/null || echo "dtool: the niceness stays $(nice), and --nice asked for $nice" >&2
[ -z "${visit+set}" ] || become "${words[0]}" "${words[@]}"
# The record of the run names its Python and its packages. They are listed beside the program, once, on machine 0. Modules of
# the code folder take no part.
list_packages() {
  local python
  case ${program[0]-} in
    python* | */python*) python=${program[0]} ;;
    *) [ -n "$activate" ] || return 0; python=python3 ;;
  esac
  # runs: the program's own Python, or that of the user's environment.
  timeout 60 "${inside[@]}" "$python" -c 'import sys
sys.path = [each for each in sys.path if each]
from importlib import metadata
names = {"%s==%s" % (each.metadata["Name"], each.version) for each in metadata.distributions()}
print("\n".join(["python " + sys.version.split()[0]] + sorted(names, key=str.lower)))' > "$state/.environment.txt" 2> /dev/null < /dev/null &&
    mv -- "$state/.environment.txt" "$state/environment.txt"
}
if [ "$attempt" = 0 ] && [ "$machine_id" = 0 ] && [ -z "$rank" ]; then (trap '' HUP; list_packages &) fi
# HUP is ignored there, because a short program may close the terminal before the list is complete.
[ -n "$rank" ] || : > "$state/begun"
[ "$torchrun" = no ] || : "${rank:=$first_rank}" "${local_rank:=0}"
if [ -n "$rank" ]; then
  case $rendezvous in
    env) export RANK=$rank LOCAL_RANK=$local_rank ROLE_RANK=$rank ;;
    independent) export RANK=0 LOCAL_RANK=0 ROLE_RANK=0 ;;
  esac
  become "${words[0]}" "${words[@]}"
fi
become dtool-host "$DTOOL_HOST" ranks "$state" "$attempt" "$place" "$first_rank" "$processes" "$rendezvous" "$fill" "${words[@]}"

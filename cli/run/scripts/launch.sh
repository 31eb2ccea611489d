# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Becomes the program where `dtool-host rank` has started this for one rank (cli/run/host/rank.h); else the one that starts all
# processes of one machine and ends as they do (cli/run/host/ranks.h). Defined before: what the numbers and environment.sh have,
# by the plan listener and port, and by dtool-host DTOOL_HOST (itself).
# Numbers by the plan and the numbers: attempt first_rank processes place.
export MASTER_ADDR=$listener MASTER_PORT=$port WORLD_SIZE=$world_size LOCAL_WORLD_SIZE=$processes GROUP_RANK=$machine_id
export -n DTOOL_HOST
words=("${inside[@]}" "${program[@]}")
if [ -n "$trainer" ]; then
  words=("${inside[@]}" "$trainer" "$state/experiment.toml" --seed "$seed" --output_dir "$output")
  if ((attempt > 0)); then words+=(--checkpoint auto); elif [ "$is_resumed" = yes ]; then words+=(--checkpoint latest); fi
fi
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
  export RANK=$rank LOCAL_RANK=$local_rank
  become "${words[0]}" "${words[@]}"
fi
become dtool-host "$DTOOL_HOST" ranks "$state" "$attempt" "$place" "$first_rank" "$processes" "${words[@]}"

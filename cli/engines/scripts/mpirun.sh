# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# Starts mpirun, on machine 0. Defined before: by the numbers state, attempt, members; slots_of, mpi_hosts (arrays, by place:
# how many processes mpirun starts there, and the host's name for mpirun's own ssh), networks (towards the others, CIDR,
# comma-separated; empty: mpirun chooses), mpirun_arguments (array, the user's), on_failure, run_id, run_folder (from the home
# folder), torchrun (yes or no). keep_ranks.sh comes next.
# Numbers by the plan and the numbers: member slots_of.
write_hostfile() {
  local member
  for member in "${members[@]}"; do echo "${mpi_hosts[member]} slots=${slots_of[member]}"; done > "$state/hostfile.$attempt"
}

# Settings of Open MPI. The user's own, by --export, take precedence.
set_default() {  # $1: name of the parameter, $2: value
  local name=OMPI_MCA_$1
  # runs: names in this file.
  [ -n "${!name+set}" ] || export "$name=$2"
}

# The command for mpirun: `bash -c TEXT NAME`, and then for each machine its place and its number of ranks.
# shellcheck disable=SC2016
find_own_machine='rank=$OMPI_COMM_WORLD_RANK
while ((rank >= $2)); do ((rank -= $2)); shift 2; done
cd ~/"$run_folder/machine$1" || exit
read -r session _ < process && exec -a dtool-host "/proc/$session/exe" rank machine "$PWD" "$OMPI_COMM_WORLD_RANK" "$OMPI_COMM_WORLD_LOCAL_RANK" "$2" $torchrun $attempt_and_members'

start_mpirun() {
  local member total=0 shares=() own=()
  for member in "${members[@]}"; do
    shares+=("$member" "${slots_of[member]}")
    ((total += slots_of[member]))
  done
  write_hostfile
  set_default orte_launch_agent "env DTOOL_RUN_ID=$run_id bash ~/$run_folder/launch_orted orted"
  set_default plm_rsh_args '-o BatchMode=yes -o ConnectTimeout=15'
  set_default plm_rsh_no_tree_spawn 1  # only machine 0 can reach the others
  set_default hwloc_base_binding_policy none  # otherwise two processes would have one core each
  if [ -n "$networks" ]; then
    [ -n "${OMPI_MCA_oob_tcp_if_exclude-}" ] || set_default oob_tcp_if_include "$networks"
    [ -n "${OMPI_MCA_btl_tcp_if_exclude-}" ] || set_default btl_tcp_if_include "$networks"
  fi
  [ "$EUID" != 0 ] || own+=(--allow-run-as-root)
  [ "$on_failure" != leave ] || own+=(--enable-recovery)
  # runs: numbers, and a run id, which dtool makes.
  "$(type -P mpirun)" --hostfile "$state/hostfile.$attempt" -np "$total" --map-by slot "${own[@]}" "${mpirun_arguments[@]}" \
    bash -c "run_folder=$run_folder torchrun=$torchrun attempt_and_members='$attempt ${members[*]}'; $find_own_machine" dtool_rank "${shares[@]}" \
    < /dev/null > >(tee "$state/mpirun.said" | exec sed -u '/^-*$/d; /plm:rsh: Warning: setpgid/d; s/^/mpirun: /') 2>&1 &
  mpirun=$!
}

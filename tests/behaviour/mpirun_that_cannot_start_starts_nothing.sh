#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What keeps mpirun from starting on all hosts is found before anything is sent or started, and named with what to do: a host
# without it, one that the first host's own ssh does not reach, flags and slots that are wrong, a program that is not there.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program mpirun
as_root
lab 3
mkdir -p "$HOME/.dtool/killfiles"
echo 'echo started >"$HOME/started"' >touch.sh

nothing_started() { # CODE ERROR ARGS of dtool run...
  local code=$1 error=$2
  shift 2
  expect_exit "$code" timeout 100 "$DTOOL" run "$@" -- bash touch.sh
  expect_error "$error"
  expect_equal '' "$(find "$HOME/.dtool/killfiles" -name '*.killfile'  )"
  for host in 1 2 3; do
    expect_no_file "$DTOOL_LAB_FOLDER/host$host/root/started"
    expect_equal '' "$([[ ! -d $DTOOL_LAB_FOLDER/host$host/root/.dtool/runs ]] || find "$DTOOL_LAB_FOLDER/host$host/root/.dtool/runs" -mindepth 1)"
  done
}
mpi=(--launcher mpi --runs_on "h[1-3]")

nothing_started 2 "mpirun's own ssh from h1 does not reach h2: Host key verification failed\.$" "${mpi[@]}"
expect_error "hint: on h1, 'ssh h2' must work without a question"
let_h1_reach_the_others
sed -i /^h3/d "$DTOOL_LAB_FOLDER/host1/root/.ssh/known_hosts"
nothing_started 2 'does not reach h3: Host key verification failed' "${mpi[@]}"
let_h1_reach_the_others
mv "$DTOOL_LAB_FOLDER/host1/root/.ssh/id_ed25519" "$work/key"
nothing_started 2 'does not reach h2: .*Permission denied' "${mpi[@]}"
# A key of its own, by the settings of mpirun's ssh, is enough.
cp "$work/key" "$DTOOL_LAB_FOLDER/host1/root/own_key"
expect_exit 0 timeout 100 "$DTOOL" run "${mpi[@]}" --follow --export OMPI_MCA_plm_rsh_args='-i ~/own_key' -- bash -c 'echo "rank $RANK"'
expect_output 'machine2: rank 2'
expect_exit 0 dtool kill --all --yes --delete
let_h1_reach_the_others

fault hide h3 orted
nothing_started 2 'orted, which belongs to mpirun, is not there on h3' "${mpi[@]}"
expect_error 'hint: .*openmpi-bin.* --runs_on .?h\[1-3\]'
fault unhide h3 orted
fault hide h1 mpirun
nothing_started 2 'mpirun is not there' "${mpi[@]}"
expect_error 'hint: .*openmpi-bin'
fault unhide h1 mpirun

nothing_started 2 'mpirun on the first machine, h1, cannot reach `local`' --launcher mpi --runs_on h1,local
nothing_started 2 '--mpirun_arg -np: dtool tells mpirun itself' "${mpi[@]}" --mpirun_arg='--mca btl self,tcp -np 7'
nothing_started 2 '--mpirun_arg' --runs_on h1,h2 --mpirun_arg=--display-map
nothing_started 2 'mpi' --launcher mpirun --runs_on h1
echo 'h1 slots=0' >"$work/hosts"
nothing_started 2 'slots' --launcher mpi --hostfile "$work/hosts"
nothing_started 2 'nproc_per_node' "${mpi[@]}" --nproc_per_node 0

# A program that is not there is known on each host before mpirun starts any.
expect_exit 1 timeout 100 "$DTOOL" run "${mpi[@]}" -- ./nothing
expect_error './nothing: no such program on this host'
expect_error 'no process of the run is left'
expect_equal '' "$(find "$HOME/.dtool/killfiles" -name '*.killfile')"
# What mpirun does not understand it says itself.
expect_exit 1 timeout 100 "$DTOOL" run "${mpi[@]}" --follow --mpirun_arg=--nonsense -- hostname
expect_error 'the cause: mpirun on machine 0 \(h1\) ended with exit code 1: .*unknown option "--nonsense"'

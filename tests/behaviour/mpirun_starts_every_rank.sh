#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With --launcher mpi mpirun starts all processes, as many on each host as it has slots, in the hosts' order; each finds the
# variables that it would find under SSH, values arrive unchanged, and status, logs, list, fetch and kill do as they do there.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program mpirun
lab 3 --private_tmp
let_h1_reach_the_others
printf '%s\n' 'h1 max_slots = 2' 'h2 slots=1' 'h3 slots=3' >"$work/hosts"
awkward=$'it'\''s "x", y;\n z $HOME \\ -x'
cat >tell.sh <<'END'
told="$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK $(hostname) $DTOOL_MACHINE_ID $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE"
printf '%q %q\n' "$V" "$1" >>"$DTOOL_OUTPUT_DIR/value.$RANK"
echo "$told $MASTER_ADDR:$MASTER_PORT"
END
expect_exit 0 timeout 100 "$DTOOL" run --launcher mpi --hostfile "$work/hosts" --export "V=$awkward" --json -- bash tell.sh "$awkward"
run_id=$(json 'd["run_id"]')
listener=$(json 'd["distributed_ip_and_port"]')
expect_equal mpi "$(json 'd["launcher"]')"
expect_equal '[2, 1, 3]' "$(json '[m["processes"] for m in d["machines"]]')"
eventually 60 expect_exit 0 bash -c "$DTOOL list --state | grep -q '$run_id.* ended'"
expect_exit 0 dtool logs "$run_id" --color never
expect_equal 6 "$(grep -c "/6 .* $listener\$" "$out")"
name() { fault exec "$1" hostname; }
for line in "machine0 r0: 0/6 0/2 0 $(name h1) 0 0" "machine0 r1: 1/6 1/2 0 $(name h1) 0 1" "machine1: 2/6 0/1 1 $(name h2) 1 2" \
  "machine2 r3: 3/6 0/3 2 $(name h3) 2 3" "machine2 r4: 4/6 1/3 2 $(name h3) 2 4" "machine2 r5: 5/6 2/3 2 $(name h3) 2 5"; do
  expect_output "^$line 6 $listener\$"
done
expect_exit 0 dtool fetch "$run_id" "$work/fetched"
expect_equal 6 "$(find "$work/fetched" -name 'value.*' -exec cat {} + | grep -cxF "$(printf '%q %q' "$awkward" "$awkward")")"
expect_exit 0 dtool status "$run_id" --json
expect_equal "['exited', 'exited', 'exited']" "$(json '[m["state"] for m in d["machines"]]')"

# Fewer processes than slots; a host without one would be none of the run's.
# shellcheck disable=SC2016
expect_exit 0 timeout 100 "$DTOOL" run --launcher mpi --hostfile "$work/hosts" --np 4 --follow -- bash -c 'echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE"'
for line in 'machine0 r0: 0/4 0/2' 'machine0 r1: 1/4 1/2' 'machine1: 2/4 0/1' 'machine2: 3/4 0/1'; do expect_output "^$line\$"; done
expect_exit 2 dtool run --launcher mpi --hostfile "$work/hosts" --np 3 -- true
expect_error '--np 3 leaves no process for h3'
expect_exit 2 dtool run --launcher mpi --hostfile "$work/hosts" --np 7 -- true
expect_error '--np 7: the hosts have 6 slots'

# What an endless run has is gone after kill: ranks that ignore TERM, what they left in sessions of their own, mpirun and orted.
cat >endless.sh <<'END'
trap '' TERM
setsid --fork sleep 1000
echo "rank $RANK waits"
while :; do sleep 0.2; done
END
expect_exit 0 timeout 100 "$DTOOL" run --launcher mpi --runs_on h1,h2,h3 --nproc_per_node 2 --json -- bash endless.sh
run_id=$(json 'd["run_id"]')
all_wait() { [[ $(dtool logs "$run_id" | grep -c waits) == 6 ]]; }
eventually 60 all_wait
expect_exit 0 dtool status "$run_id" --json
expect_equal "['running', 'running', 'running']" "$(json '[m["state"] for m in d["machines"]]')"
for program in mpirun orted; do
  for pid in $(pgrep -x $program); do
    ! tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "DTOOL_RUN_ID=$run_id" || echo $program >>"$work/bearers"
  done
done
expect_equal 'mpirun orted orted' "$(sort "$work/bearers" | xargs)"
expect_exit 0 dtool kill "$run_id" --yes --delete --grace 1
expect_error 'none is left'
expect_no_process_with "$run_id"

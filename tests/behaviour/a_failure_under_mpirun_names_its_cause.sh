#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Under mpirun, too, one failure ends the run everywhere and is named: a program that fails, a rank that is killed, mpirun, orted
# or a session that is killed, a launcher killed while it starts; and a run that starts again does so on all machines.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program mpirun
lab 3
let_h1_reach_the_others
cat >wait.sh <<'END'
[[ "$RANK" != "$FAILS" || $DTOOL_ATTEMPT != 0 ]] || { echo "rank $RANK gives up"; sleep 1; eval "$HOW"; }
echo "rank $RANK of attempt $DTOOL_ATTEMPT waits"
[[ $DTOOL_ATTEMPT != 0 ]] || exec sleep 1000
END
mpi=(run --launcher mpi --runs_on "h[1-3]")
last_run() { basename "$(find "$HOME/.dtool/killfiles" -name '*.killfile' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)" .killfile; }

fails() { # RANK HOW CAUSE
  expect_exit 1 timeout 100 "$DTOOL" "${mpi[@]}" --follow --export FAILS="$1" --export HOW="$2" -- bash wait.sh
  expect_error "the cause: $3"
  eventually 10 expect_no_process_with "$(last_run)"  # the sessions take leave of each other
}
fails 0 'exit 3' 'rank 0 on machine 0 \(h1\) ended with exit code 3: rank 0 gives up$'
fails 2 'exit 3' 'rank 2 on machine 2 \(h3\) ended with exit code 3: rank 2 gives up$'
fails 1 'kill -KILL $$' 'rank 1 on machine 1 \(h2\) was killed by signal 9 \(KILL\); its last line: rank 1 gives up$'
# The process between mpirun and the program is dtool's own.
fails 1 'kill -KILL $PPID' "dtool's own process for rank 1 on machine 1 \(h2\) was killed by signal 9 \(KILL\)$"
expect_exit 1 dtool status
expect_output "cause: dtool's own process for rank 1 on machine 1 \(h2\) was killed"

# The run starts again, on all machines, and ends well.
expect_exit 0 timeout 100 "$DTOOL" "${mpi[@]}" --max_restarts 1 --follow --export FAILS=1 --export HOW='exit 3' -- bash wait.sh
expect_equal 3 "$(grep -c 'of attempt 1 waits' "$out")"
# Left alone, the others' processes go on.
expect_exit 1 timeout 100 "$DTOOL" "${mpi[@]}" --on_failure leave --follow -- bash -c '((RANK)) || exit 4; sleep 3; echo "rank $RANK ends well"'
expect_equal 2 "$(grep -c 'ends well' "$out")"
expect_error 'h1: exit code 4'

# victim PROGRAM: the pid of one of that name that bears the run's id.
victim() {
  local pid
  for pid in $(pgrep -x "$1"); do
    if tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "DTOOL_RUN_ID=$run_id"; then echo "$pid"; break; fi
  done
}
start_endless() {
  expect_exit 0 timeout 100 "$DTOOL" "${mpi[@]}" --export FAILS= --json -- bash wait.sh
  run_id=$(json 'd["run_id"]')
  eventually 60 all_wait
}
all_wait() { [[ $(dtool logs "$run_id" | grep -c waits) == 3 ]]; }
killed() { # PROGRAM CAUSE
  start_endless
  kill -KILL "$(victim "$1")"
  expect_exit 1 timeout 100 "$DTOOL" logs "$run_id" -f
  expect_error "the cause: $2"
  eventually 30 expect_no_process_with "$run_id"
}
killed mpirun 'mpirun on machine 0 \(h1\) was killed by signal 9 \(KILL\)'
killed orted 'mpirun on machine 0 \(h1\) ended with exit code [0-9]+: ORTE has lost communication with a remote daemon. \((h2|h3)\)'
start_endless
kill -KILL "$(victim screen)"
sleep 1
expect_exit 0 dtool status "$run_id" # a session outlives its screen
expect_exit 0 dtool kill "$run_id" --yes --delete
expect_no_process_with "$run_id"

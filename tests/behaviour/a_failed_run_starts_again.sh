#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool run --max_restarts N`: after a failure the whole run starts again, with its attempt number, from the newest checkpoint, on the
# machines that answer, and a machine that was cut off ends its part by itself.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3

expect_exit 2 dtool run --max_restarts 1 --on_failure leave -- true
expect_error '--max_restarts starts again what --on_failure leave does not stop'
for wrong in -1 x 1001; do
  expect_exit 2 dtool run --max_restarts "$wrong" -- true
  expect_error 'max_restarts'
done
expect_exit 2 dtool run --on_failure wait -- true
expect_error 'on_failure'

cat >program.sh <<'END'
echo "rank $RANK of $WORLD_SIZE, machine $DTOOL_MACHINE_ID, attempt $DTOOL_ATTEMPT of $TORCHELASTIC_MAX_RESTARTS"
if [ "$RANK" = 1 ] && [ "$DTOOL_ATTEMPT" -lt "$FAILS" ]; then sleep 1; echo sick; exit 7; fi
if [ "$RANK" = 0 ]; then exit 0; fi # done, and begins anew all the same
sleep 3
END
expect_exit 0 timeout 90 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" --max_restarts 3 --export FAILS=2 -- bash program.sh
for attempt in 0 1 2; do
  for rank in 0 1 2; do
    expect_equal 1 "$(grep -c "rank $rank of 3, machine $rank, attempt $attempt of 3" "$out")"
  done
done
expect_output 'machine2: dtool: attempt 2 of 4 failed: rank 1 on machine 1 .* ended with exit code 7: sick'
expect_exit 0 dtool status
expect_output '^attempt 3 of 4$'
# The failure before the newest restart is still told, with the lines that this rank wrote until then.
sick='rank 1 on machine 1 \([0-9.]*\) ended with exit code 7: sick'
expect_output "^attempt 2 failed: $sick\$"
expect_exit 0 dtool logs --first_failure
expect_output "^rank 1 on machine1 failed first in attempt 2: $sick\$"
expect_error 'has begun attempt 3 since then$'
expect_equal 'machine1: rank 1 of 3, machine 1, attempt 1 of 3,machine1: sick' "$(tail -n 2 "$out" | paste -sd,)"
expect_exit 0 dtool logs --first_failure --json
expect_equal '1 1 1' "$(json '"%d %d %d" % tuple(d["first_failure"][each] for each in ("machine", "rank", "attempt"))')"

expect_exit 1 timeout 90 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" --max_restarts 1 --export FAILS=9 -- bash program.sh
expect_error 'the cause: rank 1 on machine 1 .* ended with exit code 7: sick'
expect_exit 1 dtool status
expect_output '^attempt 2 of 2$'
expect_exit 0 dtool logs --first_failure
expect_output "^rank 1 on machine1 failed first in attempt 2: $sick\$"

# Attempts that are shorter than the time between two reports: nobody is left behind, and who says nothing is not quoted.
cat >program.sh <<'END'
[ "$RANK" != 0 ] || exit 9
sleep 600
END
expect_exit 1 timeout 90 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" --max_restarts 3 -- bash program.sh
expect_error 'the cause: rank 0 on machine 0 \([0-9.]*\) ended with exit code 9$'
for machine in 1 2; do
  expect_output "machine$machine: dtool: attempt 3 of 4 failed: rank 0 on machine 0"
done

# The bundled trainer goes on from its checkpoint.
if [[ -x ${DTOOL_TRAINER:-} ]]; then
  cat >endless.toml <<'END'
workload = "classifier"
data.source = "digits"
data.train_samples = 3000
data.test_samples = 300
train.epochs = 1000000
distributed.collective_timeout_seconds = 4
END
  expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --max_restarts 2 endless.toml
  run_id=$(json 'd["run_id"]')
  output=$(json 'd["machines"][0]["output_folder"]')
  has_checkpoint() { [[ -n $(on 1 bash -c "ls $output/checkpoints/step_* 2> /dev/null") ]]; }
  eventually 60 has_checkpoint
  on 3 pkill -KILL -x dtool-trainer-w
  resumed() { on 1 bash -c "grep -q 'resumed from .*/checkpoints/step_' $output/machine0.log"; }
  eventually 40 resumed
  expect_exit 0 dtool status "$run_id"
  expect_output '^attempt 2 of 3$'
  expect_exit 0 dtool logs "$run_id" --first_failure --tail 1
  expect_output '^rank 2 on machine2 failed first in attempt 1: rank 2 .* was killed by signal 9 \(KILL\)'
  expect_exit 0 dtool kill "$run_id" --yes --delete
  expect_no_process_with "$run_id"
fi

# A machine that was cut off is left out, after as long as the user says.
cat >program.sh <<'END'
echo "rank $RANK of $WORLD_SIZE, attempt $DTOOL_ATTEMPT"
sleep 600
END
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --max_restarts 1 --lost_after 8 -- bash program.sh
run_id=$(json 'd["run_id"]')
on 2 timeout 20 bash -c 'until [ "$(cat ~/.dtool/runs/'"$run_id"'/machine1/supervision 2> /dev/null)" = ok ]; do sleep 0.1; done'
fault cut h2
output=$(json 'd["machines"][0]["output_folder"]')
begun_again() { on 1 bash -c "grep -q 'rank 0 of 2, attempt 1' $output/machine0.log"; }
eventually 100 begun_again
expect_equal 1 "$(on 1 bash -c "grep -c 'machine 1 .* was lost: no sign of life for 8 s' $output/machine0.log")"
# By itself, with nobody to tell it.
quiet_on_2() { [[ -z $(on 2 pgrep -f '^bash program.sh$') ]]; }
eventually 30 quiet_on_2
fault mend h2
expect_exit 0 dtool kill "$run_id" --yes --delete
expect_no_process_with "$run_id"

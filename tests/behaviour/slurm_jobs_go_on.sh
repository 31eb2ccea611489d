#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Restarts in the job, job arrays, runs inside an allocation; a job that Slurm puts back into the queue goes on, and a training that
# reaches its time limit goes on from the checkpoint that it was asked for.
source "$(dirname "$0")/harness.sh"
needs_isolation
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
slurm_lab 3
mkdir code
cd code
cat >e.toml <<'END'
workload = "classifier"
data.source = "digits"
data.train_samples = 600
data.test_samples = 100
train.epochs = 1
END

# A failure: the processes are started again in the job.
# shellcheck disable=SC2016
expect_exit 0 dtool run --launcher slurm --nodes 2 --max_restarts 2 --follow -- \
  bash -c 'echo "attempt $DTOOL_ATTEMPT of rank $RANK"; [ "$RANK" = 0 ] || [ "$DTOOL_ATTEMPT" = 2 ] || exit 3; sleep 1'
expect_output '^machine1: attempt 2 of rank 1$'
expect_exit 0 dtool status
expect_output '^attempt 3 of 3$'
expect_output '^attempt 2 failed: rank 1 on machine 1 \(h[23]\) ended with exit code 3'
expect_exit 0 dtool logs --first_failure
expect_output '^rank 1 on machine1 failed first in attempt 2: '
expect_equal 'machine1: attempt 1 of rank 1' "$(tail -n 1 "$out")"
expect_exit 1 dtool run --launcher slurm --nodes 2 --max_restarts 1 --follow -- bash -c 'sleep 1; exit $((RANK * 3))'
expect_exit 1 dtool status
expect_output 'cause: rank 1 on machine 1 \(h[23]\) ended with exit code 3'
expect_exit 0 dtool kill --all --yes --delete

# A rank is killed: it is the cause, and not the connection that the other one lost by that. A mistake is not tried again.
sed 's/epochs = 1/epochs = 1000000/' e.toml >endless.toml
echo 'checkpoint.every_epochs = 0' >>endless.toml
: >"$out"
timeout 100 "$DTOOL" run endless.toml --launcher slurm --nodes 2 --follow >"$out" 2>"$err" </dev/null &
waiting=$!
eventually 60 grep -q samples/s "$out"
signal_rank KILL 1 h2 h3
expect_ended 1 "$waiting" 'dtool run --follow, a rank killed'
killed='rank 1 on machine 1 \(h[23]\) was killed by signal 9 \(KILL\)'
expect_error "the cause: $killed"
expect_exit 1 dtool status
expect_output "cause: $killed"
for host in 0 1; do
  tail -n 1 experiment_output/endless_*/machine$host.log >"$out"
  expect_output "^dtool: the run failed: $killed"
done
sed 's/"digits"/"mnist"/; $ a data.path = "/root/nothing"\ndata.download = false' e.toml | grep -v _samples >mistake.toml
expect_exit 1 dtool run mistake.toml --launcher slurm --nodes 2 --max_restarts 3 --follow
expect_error 'the cause: rank [01] on machine [01] \(h[23]\) ended with exit code 2: no train-images.*hint: '
expect_no_output 'attempt 2'
expect_exit 0 dtool kill --all --yes --delete

# A run for each seed: the numbers are those of a run of that seed alone.
expect_exit 0 dtool run e.toml --launcher slurm --seeds 4,8-9 --follow
expect_error '^outputs: .*/e_[0-9a-f-]+$'
expect_exit 0 dtool run e.toml --launcher slurm --seed 8 --follow
losses() { sed -n 's/.*"loss": \([0-9.e-]*\).*/\1/p' "$1"; }
for seed in 4 8 9; do [[ -s $(echo experiment_output/e_*/seed$seed/metrics.jsonl) ]] || fail "no metrics of seed $seed"; done
expect_equal "$(losses experiment_output/e_*/metrics.jsonl)" "$(losses experiment_output/e_*/seed8/metrics.jsonl)"
[[ -n $(losses experiment_output/e_*/metrics.jsonl) ]] || fail 'no losses'
expect_exit 0 dtool kill --all --yes --delete

# Inside an allocation.
cat >inside.sh <<END
set -e
$DTOOL run --follow -- bash -c 'echo "rank \$RANK of \$WORLD_SIZE"'
$DTOOL run --nodes 1 --nproc_per_node 1 -- sleep 1000
until squeue --noheader --steps --format %j | grep -q sleep; do sleep 0.1; done
$DTOOL status
$DTOOL kill --all --yes --delete
[ -z "\$(squeue --noheader --steps --format %j | grep -v -e extern -e interactive)" ]
! $DTOOL run --partition lab -- true
! $DTOOL run --nodes 3 -- true
END
expect_exit 0 timeout 100 salloc --nodes 2 --ntasks-per-node 2 bash inside.sh
for rank in 0 1 2 3; do expect_output "^machine$((rank / 2)) r$rank: rank $rank of 4\$"; done
expect_error 'started in the allocation of job'
expect_error '--partition is for a new job, and dtool is inside job [0-9]+'
expect_error '--nodes 3: job [0-9]+, which dtool is inside, has 2'

# Another host that sees the home folder has no such processes, and asks Slurm; each machine has the exit code of its own processes.
cat >batch.sh <<END
#!/bin/bash
$DTOOL run --on_failure leave --follow -- bash -c 'until [ -e "\$DTOOL_CODE_DIR/go" ]; do sleep 0.1; done; exit \$((RANK * 6))'
END
job=$(sbatch --parsable --nodes 2 --ntasks-per-node 1 --output batch.out batch.sh)
runs_there() { expect_exit 0 dtool status && expect_output 'running on 2 of 2 machines'; }
eventually 30 runs_there
touch go
has_ended() { expect_exit 1 dtool status --json && expect_equal '[0, 6]' "$(json '[m.get("exit_code") for m in d["machines"]]')"; }
eventually 30 has_ended
# dtool in the job has its own last work to do: until the job is over it may have left something on its host.
no_job_runs() { [ -z "$(squeue --noheader --jobs "$job" --states RUNNING)" ]; }
eventually 30 no_job_runs
expect_exit 0 dtool kill --all --yes --delete
# Whose allocation is gone is not taken for running any more.
rm go
job=$(sbatch --parsable --nodes 2 --ntasks-per-node 1 --output batch.out batch.sh)
eventually 30 runs_there
scancel "$job"
is_over() { expect_exit 1 dtool status && expect_no_output 'rebooted|  running  '; }
eventually 60 is_over
expect_exit 0 dtool kill --all --yes --delete

# The time limit: Slurm looks every 30 s, and waits 15 s before it starts a job again.
sed -i 's/epochs = 1/epochs = 1000000/' e.toml
echo 'checkpoint.every_epochs = 1000000' >>e.toml
expect_exit 0 dtool run e.toml --launcher slurm --nodes 2 --time 1
trains() { expect_exit 0 dtool logs && expect_output 'samples/s'; }
eventually 60 trains
went_on() { expect_exit 0 dtool logs && expect_output '^machine0: resumed from .*/step_[0-9]+\.safetensors'; }
eventually 150 went_on
expect_output 'checkpoint written: step [0-9]+, since SIGUSR1 came'
expect_exit 0 dtool status
expect_output '^attempt 2$'
expect_exit 0 dtool kill --yes --delete
expect_equal '' "$(squeue --noheader)"

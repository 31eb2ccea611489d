#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Restarts in the job and job arrays; a job that Grid Engine starts again goes on, and a training that reaches its time limit goes on from the
# checkpoint that it was asked for.
source "$(dirname "$0")/harness.sh"
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
gridengine_lab 3
mkdir code
cd code
cat >e.toml <<'END'
workload = "classifier"
data.source = "digits"
data.train_samples = 600
data.test_samples = 100
train.epochs = 1
END
grid() { dtool run --launcher gridengine --runs_on "$login" --parallel_environment one "$@"; }

# A failure: the processes are started again in the job. Those that are not at fault are ended.
# shellcheck disable=SC2016
expect_exit 0 grid --nodes 2 --max_restarts 2 --follow -- \
  bash -c 'echo "attempt $DTOOL_ATTEMPT of rank $RANK"; [ "$DTOOL_ATTEMPT" = 2 ] || { [ "$RANK" = 0 ] && sleep 1000; exit 3; }'
expect_output '^machine1: attempt 2 of rank 1$'
expect_exit 0 dtool status
expect_output '^attempt 3 of 3$'
# shellcheck disable=SC2016
expect_exit 0 grid --nodes 2 --max_restarts 1 --follow -- bash -c '[ "$DTOOL_ATTEMPT" = 1 ] || { [ "$RANK" = 0 ] || kill -KILL $$; sleep 1000; }'
expect_exit 0 dtool status
expect_output '^attempt 2 of 2$'
expect_exit 1 grid --nodes 2 --max_restarts 1 --follow -- bash -c 'sleep $((1000 - RANK * 999)); exit $((RANK * 3))'
expect_exit 1 dtool status
expect_output 'cause: rank 1 on machine 1 \(h[23]\) ended with exit code 3'
expect_exit 1 grid --nodes 2 --on_failure leave --follow -- bash -c 'sleep $((4 - RANK * 3)); echo "rank $RANK ends"; exit $((RANK * 3))'
expect_output 'rank 0 ends'
expect_exit 0 dtool kill --all --yes --delete

# A rank is killed: it is the cause, and not the connection that the other one lost by that.
sed 's/epochs = 1/epochs = 1000000/' e.toml >endless.toml
echo 'checkpoint.every_epochs = 0' >>endless.toml
: >"$out"
timeout 100 "$DTOOL" run endless.toml --launcher gridengine --runs_on "$login" --parallel_environment one --nodes 2 --follow >"$out" 2>"$err" </dev/null &
waiting=$!
eventually 60 grep -q samples/s "$out"
signal_rank KILL 1 h2 h3
expect_ended 1 "$waiting" 'dtool run --follow, a rank killed'
expect_error 'the cause: rank 1 on machine 1 \(h[23]\) was killed by signal 9 \(KILL\)'
expect_exit 0 dtool kill --all --yes --delete

# A run for each seed.
expect_exit 0 grid e.toml --seeds 4,8-9 --follow
outputs=$(echo "$DTOOL_LAB_FOLDER"/host1/root/code/experiment_output/e_*)
for seed in 4 8 9; do [[ -s $outputs/seed$seed/metrics.jsonl ]] || fail "no metrics of seed $seed"; done
expect_exit 0 dtool kill --all --yes --delete

# The time limit.
sed -i 's/epochs = 1/epochs = 1000000/' e.toml
echo 'checkpoint.every_epochs = 1000000' >>e.toml
expect_exit 0 dtool run e.toml --launcher gridengine --runs_on "$login" --parallel_environment two --ntasks_per_node 2 --time 0:40
went_on() { expect_exit 0 dtool logs && expect_output '^machine0 r0: resumed from .*/step_[0-9]+\.safetensors'; }
eventually 180 went_on
expect_output 'checkpoint written: step [0-9]+, since SIGUSR1 came'
expect_exit 0 dtool status
expect_output '^attempt 2$'
expect_exit 0 dtool kill --yes --delete
expect_equal '' "$(on h1 qstat)"

# Grid Engine does not start a job of several nodes again, so that one ends.
expect_exit 1 grid e.toml --nodes 2 --time 0:30 --follow
expect_error 'at its time limit this training writes a checkpoint and ends'
expect_output '^machine0: checkpoint written: step [0-9]+, since SIGTERM came'
timed_out() { expect_exit 1 dtool status && expect_output 'cause: job [0-9]+ reached its time limit'; }
eventually 30 timed_out
expect_equal '' "$(on h1 qstat)"

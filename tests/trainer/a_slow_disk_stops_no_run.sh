#!/bin/bash
# Checkpoints take longer than a collective operation may: training goes on meanwhile, nobody is taken for lost, and what
# is on the disk in the end is what a fast disk has. A request is answered when its checkpoint is on the disk.
. "$(dirname "$0")/harness.sh"
slow=$(dirname "$trainer")/libslow_disk.so
[ -e "$slow" ] || fail "no $slow"
digits_experiment e.toml data.train_samples=1000 data.test_samples=50 train.batch_size=10 train.epochs=6 \
  checkpoint.every_epochs=1 checkpoint.keep=2 distributed.collective_timeout_seconds=4
"$trainer" e.toml --nproc_per_node 2 --seed 5 --output_dir fast > fast.log 2>&1 || fail "on a fast disk: exit code $?"
LD_PRELOAD=$slow DTOOL_TEST_FSYNC_SECONDS=6 "$trainer" e.toml --nproc_per_node 2 --seed 5 --output_dir slow > slow.log 2>&1 ||
  fail "on a slow disk: exit code $?"
diff -r fast/checkpoints slow/checkpoints || fail "the slow disk has other checkpoints"
# Between the first epoch's end and the last's there was no wait for the disk.
metric slow epoch time | awk 'NR == 1 { first = $1 } END { exit !(NR == 6 && $1 - first < 6) }' ||
  fail "training waited for the disk: $(metric slow epoch time | xargs)"

endless_experiment endless.toml distributed.collective_timeout_seconds=4 checkpoint.every_steps=100000000
LD_PRELOAD=$slow DTOOL_TEST_FSYNC_SECONDS=6 "$trainer" endless.toml --nproc_per_node 2 --output_dir endless > endless.log 2>&1 &
run=$!
started+=("$run")
await 60 "training" is_training endless.log
kill -USR1 "$run"
await 60 "the answer" grep -q '^checkpoint written: step [0-9]*, since SIGUSR1 came$' endless.log
step=$(sed -n 's/^checkpoint written: step \([0-9]*\), .*/\1/p' endless.log)
[ -e "endless/checkpoints/$(printf 'step_%09d.pt' "$step")" ] || fail "step $step is not on the disk"
kill -0 "$run" || fail "the run is over"

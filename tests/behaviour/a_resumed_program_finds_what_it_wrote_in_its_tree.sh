#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that keeps its checkpoints beside its code finds them there when it goes on, on other hosts, too; its code is what it was, unless
# --resync sends what the folder has now; with --broadcast_outputs each machine has what machine 0 wrote.
source "$(dirname "$0")/harness.sh"
lab 3
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
mkdir code
cd code
cat >train.sh <<'END'
mkdir -p out/'a b'
steps=$(cat out/ckpt 2>/dev/null || echo 0)
echo "rank $RANK begins at $steps of $(cat 'out/a b/rank' 2>/dev/null), counted $(cat counter) times, version $(cat version) $*"
echo $((steps + 1 + RANK)) >out/ckpt
echo "rank $RANK" >'out/a b/rank'
echo $(($(cat counter) + 1)) >counter
END
echo one >version
echo 0 >counter
expect_exit 0 dtool run --json --follow --runs_on "${address[0]},${address[1]}" -- bash train.sh
first=$(json 'd["run_id"]')

# With other words, on the same hosts. What the program changed of its code is as it left it.
expect_exit 0 dtool run --json --follow --resume "$first" -- bash train.sh --more
second=$(json 'd["run_id"]')
expect_no_error 'changed here'
expect_exit 0 dtool logs "$second"
expect_output '^machine0: rank 0 begins at 1 of rank 0, counted 1 times, version one --more$'
expect_output '^machine1: rank 1 begins at 2 of rank 1, counted 1 times, version one --more$'

# The code is edited meanwhile. One machine is another host.
echo two >version
expect_exit 0 dtool run --json --follow --resume "$second" --runs_on "${address[2]},${address[1]}"
third=$(json 'd["run_id"]')
expect_error "goes on with the code of $second, as it was sent; since then 1 file changed here: version; --resync sends the folder as it is now"
expect_exit 0 dtool logs "$third"
expect_output '^machine0: rank 0 begins at 2 of rank 0, counted 2 times, version one --more$'
expect_output '^machine1: rank 1 begins at 4 of rank 1, counted 2 times, version one --more$'

# A file that the program and its user both changed is nowhere as it was.
echo 7 >counter
expect_exit 2 dtool run --resume "$third"
expect_error "the code of $third is nowhere as it was sent: .*counter"
expect_error '^hint: --resync sends the folder as it is now'

# With the folder as it is now; what was sent stays as it was sent.
expect_exit 0 dtool run --json --follow --resume "$third" --resync
fourth=$(json 'd["run_id"]')
expect_no_error 'changed here'
expect_exit 0 dtool logs "$fourth"
expect_output '^machine0: rank 0 begins at 3 of rank 0, counted 7 times, version two --more$'
expect_output '^machine1: rank 1 begins at 6 of rank 1, counted 7 times, version two --more$'

# The tree of the earlier run is gone by then.
expect_exit 0 dtool kill --yes --delete "$fourth"
expect_exit 0 dtool run --json --follow --resume "$fourth" --broadcast_outputs
fifth=$(json 'd["run_id"]')
expect_exit 0 dtool logs "$fifth"
expect_output '^machine0: rank 0 begins at 4 of rank 0, counted 8 times, version two --more$'
expect_output '^machine1: rank 1 begins at 4 of rank 0, counted 8 times, version two --more$'

# Without the earlier run the flags mean nothing.
for flag in --resync --broadcast_outputs; do
  expect_exit 2 dtool run "$flag" --runs_on "${address[0]}" -- bash train.sh
  expect_error "$flag .*--resume"
done

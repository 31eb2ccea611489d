#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that handles TERM, and nothing else, has the whole grace of `dtool kill` for its last work, however soon the
# others are done; it is told once (by mpirun once more), and keeps its terminal meanwhile.
source "$(dirname "$0")/harness.sh"
lab 2
let_h1_reach_the_others

# Rank 1 takes longer than what a failure elsewhere would leave it.
cat >slow_end.sh <<'END'
cd "$DTOOL_OUTPUT_DIR"
end() {
  echo told >>told.$RANK
  for ((i = 0; i < RANK * 40 + 10; i++)); do sleep 0.1; done
  echo cleaned >cleaned.$RANK
  exit
}
trap end TERM
: >begun.$RANK
while :; do sleep 0.1; done
END
has_begun() { on 1 test -e "$folder/begun.0" && on 2 test -e "$folder/begun.1"; }

for way in '--on_failure stop' '--on_failure leave' '--max_restarts 2' '--launcher mpi'; do
  read -ra flags <<<"$way"
  expect_exit 0 dtool run --json "${flags[@]}" --runs_on "$DTOOL_LAB_HOSTS" -- bash slow_end.sh
  run_id=$(json 'd["run_id"]')
  folder=here/experiment_output/$run_id
  eventually 60 has_begun
  expect_exit 0 dtool kill --json --grace 60 --yes --delete "$run_id"
  expect_equal 0 "$(json 'd["runs"][0]["forced"]')"
  for rank in 0 1; do
    expect_equal cleaned "$(on $((rank + 1)) cat "$folder/cleaned.$rank")"
    [[ $way == *mpi ]] || expect_equal told "$(on $((rank + 1)) cat "$folder/told.$rank")"
  done
  expect_no_process_with "$run_id"
done

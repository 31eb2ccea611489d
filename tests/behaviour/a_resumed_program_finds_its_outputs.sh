#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that goes on from an earlier run finds that run's outputs in DTOOL_RESUME_FROM, on hosts that took no part in it, too. Two resumes
# of one run, a run that still goes on, one of an older dtool, one whose outputs find no room: each is named, and nothing is started.
source "$(dirname "$0")/harness.sh"
lab 3
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
killfiles() { ls "$HOME/.dtool/killfiles"; }
nothing_started() {
  expect_equal "$before" "$(killfiles)"
  expect_equal "$runs" "$(for i in 1 2 3; do on "$i" sh -c "ls .dtool/runs 2>/dev/null || true"; done | sort -u)"
}
remember_folders() { runs=$(for i in 1 2 3; do on "$i" sh -c "ls .dtool/runs 2>/dev/null || true"; done | sort -u); }
remember() {
  before=$(killfiles)
  remember_folders
}

mkdir code elsewhere
cd code
cat >program.sh <<'END'
mkdir -p "$DTOOL_OUTPUT_DIR/state dir"
if [ -n "${DTOOL_RESUME_FROM-}" ]; then
  echo "rank $RANK of $WORLD_SIZE goes on from $(cat "$DTOOL_RESUME_FROM/state dir/of $RANK") with $TOKEN in $PLACE"
  [ "$DTOOL_RESUME_FROM" = "$DTOOL_OUTPUT_DIR" ] && [ -L "$DTOOL_RESUME_FROM/link" ] || exit 1
else
  echo "state of $RANK" >"$DTOOL_OUTPUT_DIR/state dir/of $RANK"
  ln -s "state dir" "$DTOOL_OUTPUT_DIR/link"
  head -c 3000000 /dev/urandom >"$DTOOL_OUTPUT_DIR/large"
fi
${WAIT-}
END
export PLACE=here
expect_exit 0 dtool run --json --follow --runs_on "${address[0]},${address[1]}" --export TOKEN=sesame --export PLACE -- bash program.sh
first=$(json 'd["run_id"]')
code_folder=$(python3 -c "import json; print(json.load(open('$HOME/.dtool/records/$first.json'))['machines'][0]['code_folder'])")
remember

# What must be given again, and from where.
expect_exit 2 dtool run --resume "$first"
expect_error "$first exported TOKEN, and values of exports are not recorded"
expect_error '--export TOKEN=…'
expect_exit 2 env -u PLACE "$DTOOL" run --resume "$first" --export TOKEN=x
expect_error '--export: PLACE is not set here'
cd ../elsewhere
expect_exit 2 dtool run --resume "$first" --export TOKEN=x
expect_error "has the code of .*/code, and the current folder is .*/elsewhere"
expect_exit 0 dtool run --resume "$first" --export TOKEN=x --no_sync --dry_run
expect_error "^--no_sync: the code that the hosts have now runs, whether or not it is still that of $first$"
expect_output "^machine 0 +.*: code in $code_folder,"
cd ../code
expect_exit 2 dtool run --resume nothing_like_this
expect_error 'no run nothing_like_this is recorded here'
expect_exit 0 dtool run --resume "$first" --export TOKEN=x --dry_run -- bash program.sh --more
expect_error "^goes on from $first, which ran: bash program.sh$"
expect_output '^runs +bash program.sh --more$'
nothing_started

# A run of an older dtool, which has no record, or one without flags.
cp "$HOME/.dtool/records/$first.json" "$work/record"
python3 - "$HOME/.dtool/records/$first.json" <<'END'
import json, sys
record = json.load(open(sys.argv[1]))
del record["flags"]
json.dump(record, open(sys.argv[1], "w"))
END
expect_exit 2 dtool run --resume "$first" --export TOKEN=x
expect_error "$first cannot be resumed: an older dtool started it"
rm "$HOME/.dtool/records/$first.json"
expect_exit 2 dtool run --resume "$first" --export TOKEN=x
expect_error "$first cannot be resumed: it has no record here"
cp "$work/record" "$HOME/.dtool/records/$first.json"
nothing_started

# No room for the outputs, there or here.
if [[ $("$here/../lab" mode) == isolated ]]; then
  on 3 mkdir -p out
  disk_on 3 size=1m /root/out
  expect_exit 2 dtool run --resume "$first" --export TOKEN=x --runs_on "${address[2]}" --output_dir /root/out
  expect_error "^  ${address[2]}: .*No space left on device"
  expect_error '^nothing was started$'
  expect_equal '' "$(on 3 find /root/out -type f)"
  nothing_started
  sudo_on 3 umount /root/out
  mkdir -p "$HOME/.dtool/brought"
  # shellcheck disable=SC2016
  expect_exit 2 unshare --mount bash -c 'mount -t tmpfs -o size=1m none "$HOME/.dtool/brought" && exec "$0" "$@"' \
    "$DTOOL" run --resume "$first" --export TOKEN=x --runs_on "${address[2]}"
  expect_error 'No space left on device'
  nothing_started

  # Ctrl-C while they come leaves nothing but an empty folder on the hosts. A dtool that is killed leaves its killfile: until that is gone, nobody goes on from the run.
  fault slow h1 rate 2mbit
  begin() {
    env --default-signal=INT "$DTOOL" run --resume "$first" --export TOKEN=x --runs_on "${address[2]}" >"$out" 2>"$err" &
    begun=$!
    eventually 30 sh -c "ls -d $HOME/.dtool/brought/*/machine0"
  }
  begin
  kill -INT "$begun"
  expect_ended 130 "$begun"
  remember_folders
  nothing_started
  expect_equal 1 "$(find "$HOME/.dtool/records" -name '*.json' | wc -l)"
  expect_equal '' "$(ls "$HOME/.dtool/brought")"
  begin
  kill -KILL "$begun"
  expect_ended 137 "$begun"
  killed=$(basename "$(ls -d "$HOME"/.dtool/brought/*)")
  expect_exit 2 dtool run --resume "$first" --export TOKEN=x
  expect_error "$killed goes on from $first already"
  expect_exit 0 dtool kill --delete "$killed"
  fault mend h1
  nothing_started
fi

# The hosts change places, and one is new: each rank finds what its rank left.
expect_exit 0 dtool run --json --follow --resume "$first" --export TOKEN=open --runs_on "${address[2]},${address[0]}"
second=$(json 'd["run_id"]')
expect_equal "['$first']" "$(json 'd["chain"]')"
expect_exit 0 dtool logs "$second"
expect_output '^machine0: rank 0 of 2 goes on from state of 0 with open in here$'
expect_output '^machine1: rank 1 of 2 goes on from state of 1 with open in here$'
# Outputs that cannot be reached are not gone on from; a machine that has none of them is only named.
if [[ $("$here/../lab" mode) == isolated ]]; then
  remember
  fault cut h3
  expect_exit 2 dtool run --resume "$second" --export TOKEN=open --runs_on "${address[0]}" --connect_timeout 2
  expect_error "whether $second has ended is not known: ${address[2]}: "
  nothing_started
  fault mend h3
  fault cut h1
  expect_exit 0 dtool run --json --follow --resume "$second" --export TOKEN=open --runs_on "${address[2]}" --connect_timeout 2
  expect_error "whether $second has ended on ${address[0]} is not known"
  fault mend h1
  third=$(json 'd["run_id"]')
  expect_exit 0 dtool logs "$third"
  expect_output '^machine0: rank 0 of 1 goes on from state of 0 with open in here$'
  expect_exit 0 dtool kill --yes --delete "$third"
  rm "$HOME/.dtool/records/$third.json"
fi
# Another code folder has other outputs, and they are brought there.
expect_exit 0 dtool run --follow --resume "$second" --export TOKEN=open --code_path other
expect_output '^machine0: rank 0 of 2 goes on from state of 0 with open in here$'

# From this machine to a host, and back.
expect_exit 0 dtool run --json --follow --export TOKEN=x --export PLACE -- bash program.sh
local_run=$(json 'd["run_id"]')
expect_exit 0 dtool run --json --follow --resume "$local_run" --export TOKEN=there --runs_on "${address[1]}"
there=$(json 'd["run_id"]')
expect_exit 0 dtool logs "$there"
expect_output '^machine0: rank 0 of 1 goes on from state of 0 with there in here$'
on 2 sh -c "echo 'a later state' >\"\$HOME\"/${code_folder#\~/}/experiment_output/$local_run/'state dir/of 0'"
expect_exit 0 dtool run --follow --resume "$there" --export TOKEN=home --runs_on local
expect_output 'rank 0 of 1 goes on from a later state with home in here$'
expect_equal 'a later state' "$(<"experiment_output/$local_run/state dir/of 0")"

# One that still goes on. It is ended, and of two that are to go on from it at once, one does.
expect_exit 0 dtool run --json --runs_on "${address[0]}" --export WAIT='sleep 1000' -- bash program.sh
fourth=$(json 'd["run_id"]')
expect_exit 2 dtool run --resume "$fourth" --export WAIT=true
expect_error "$fourth still goes on: it is running"
expect_exit 0 dtool kill --yes --delete "$fourth"
for round in 1 2 3; do
  "$DTOOL" run --json --resume "$fourth" --export WAIT= >one 2>one.err </dev/null & one=$!
  "$DTOOL" run --json --resume "$fourth" --export WAIT= >two 2>two.err </dev/null & two=$!
  code_one=0 code_two=0
  wait "$one" || code_one=$?
  wait "$two" || code_two=$?
  expect_equal '0 2' "$(printf '%s\n' "$code_one" "$code_two" | sort | xargs)"
  loser=one.err winner=two
  ((code_one != 0)) || { loser=two.err winner=one; }
  fifth=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["run_id"])' "$winner")
  grep -q "$fifth goes on from $fourth already" "$loser" || fail "the other does not name it in round $round: $(<"$loser")"
  expect_equal 1 "$(grep -l "^chain = \[\"$fourth\"\]" "$HOME"/.dtool/killfiles/*.killfile | wc -l)"
  expect_exit 0 dtool kill --yes --delete "$fifth"
  # That one is forgotten, but its outputs have gone on.
  expect_exit 2 dtool run --resume "$fourth" --export WAIT=
  expect_error "$fifth goes on from $fourth already"
  rm "$HOME/.dtool/records/$fifth.json"
done
expect_exit 0 dtool run --follow --resume "$fourth" --export WAIT=
expect_output 'goes on from state of 0'

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool fetch` brings each machine's outputs and log into a folder of its own, again only what is new, and by --only
# what was asked for. It goes on where it broke off, deletes nothing here, and names what it cannot do.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 3

mkdir code
cd code
cat >train.sh <<'END'
echo "rank $RANK"
mkdir -p "$DTOOL_OUTPUT_DIR/checkpoints"
echo "{\"rank\": $RANK}" >"$DTOOL_OUTPUT_DIR/metrics.jsonl"
head -c 300000 /dev/urandom >"$DTOOL_OUTPUT_DIR/checkpoints/it is #1.pt"
ln -s 'it is #1.pt' "$DTOOL_OUTPUT_DIR/checkpoints/latest"
END
expect_exit 0 dtool run --follow --json --runs_on "$DTOOL_LAB_HOSTS" -- bash train.sh
id=$(json 'd["run_id"]')
cd ..

# All of it, the newest run.
expect_exit 0 dtool fetch
expect_error "^the newest run is $id\$"
expect_error '^machine2 .*: 3 files, 300\..* kB into '"$id/machine2"
for i in 0 1 2; do
  expect_equal "{\"rank\": $i}" "$(cat "$id/machine$i/metrics.jsonl")"
  expect_equal "rank $i" "$(cat "$id/machine$i/machine$i.log")"
  expect_equal 'it is #1.pt' "$(readlink "$id/machine$i/checkpoints/latest")"
  cmp "$id/machine$i/checkpoints/latest" "$DTOOL_LAB_FOLDER/host$((i + 1))/root/code/experiment_output/$id/checkpoints/latest"
done

# A folder elsewhere is named as it is.
expect_exit 0 dtool fetch "$id" "$work/elsewhere"
expect_error "^machine0 .* into $work/elsewhere/machine0\$"

# Again: what is new comes, what is here alone stays.
echo mine >"$id/machine0/notes"
echo more | on 2 tee "code/experiment_output/$id/later" >/dev/null
expect_exit 0 dtool fetch "${id:0:12}" "$id" --json
expect_equal '[0, 1, 0]' "$(json '[m["files"] for m in d["machines"]]')"
expect_equal '[0, 1, 2]' "$(json '[m["id"] for m in d["machines"]]')"
expect_equal more "$(cat "$id/machine1/later")"
expect_equal mine "$(cat "$id/machine0/notes")"

# Another run's outputs never come over these, nor any outputs over a person's files.
cd code
expect_exit 0 dtool run --follow --json --runs_on "$DTOOL_LAB_HOSTS" -- bash train.sh
other=$(json 'd["run_id"]')
cd ..
metrics=$(sha256sum "$id"/machine*/checkpoints/*.pt)
expect_exit 2 dtool fetch "$other" "$id"
expect_error "$id/machine0 has the outputs of $id\$"
expect_error "^hint: name another folder: dtool fetch $other $PWD/$other\$"
expect_equal "$metrics" "$(sha256sum "$id"/machine*/checkpoints/*.pt)"
mkdir -p mine/machine1
echo mine >mine/machine1/metrics.jsonl
expect_exit 2 dtool fetch "$other" mine
expect_error 'mine/machine1 is there, and dtool fetched nothing into it$'
expect_equal mine "$(cat mine/machine1/metrics.jsonl)"
expect_no_file mine/machine0

# What was fetched into the code folder is no code; a word that names it gets a note.
cd code
expect_exit 0 dtool fetch "$id" results
expect_exit 0 dtool run --follow --runs_on "$(head -n 1 "$DTOOL_LAB_FOLDER/hosts")" -- \
  bash -c 'find . -name "*.pt" | grep results || echo none' results/machine0/checkpoints/latest
expect_output 'none$'
expect_error '^results/machine0/checkpoints/latest was fetched by dtool, so it is not sent with the code; --include results/machine0/checkpoints/latest sends it$'
expect_exit 0 dtool run --follow --include results/machine0 --runs_on "$(head -n 1 "$DTOOL_LAB_FOLDER/hosts")" -- \
  bash -c 'find . -name "*.pt" | grep results'
expect_output './results/machine0/checkpoints/it is #1.pt$'
expect_exit 2 dtool run --include ../elsewhere -- bash train.sh
expect_error "include ../elsewhere is not below the current folder"
rm -r results
cd ..

# A part of it.
expect_exit 0 dtool fetch "$id" 'only these' --only '*.jsonl' --machine 1 --machine 2
expect_equal 'machine1/metrics.jsonl machine2/metrics.jsonl' "$(cd 'only these' && find . -type f ! -name .gitignore -printf '%P\n' | sort | xargs)"
expect_exit 0 dtool fetch "$id" folders --only 'checkpoints/' --machine 0
expect_equal './machine0/checkpoints/it is #1.pt' "$(find folders -type f ! -name .gitignore -printf './%P\n')"

# A host that does not answer; the others' outputs come.
fault cut h2
expect_exit 1 dtool fetch "$id" lost --connect_timeout 2
expect_error '1 of 3 hosts failed: fetching'
expect_error "$(sed -n 2p "$DTOOL_LAB_FOLDER/hosts"): "
expect_file lost/machine0/metrics.jsonl
expect_file lost/machine2/metrics.jsonl
expect_no_file lost/machine1
fault mend h2

# Broken off by SIGTERM and by SIGKILL in the middle of a file: no file is there that is not whole, the next goes on.
on 1 bash -c "head -c 30000000 /dev/urandom >'code/experiment_output/$id/big'"
fault slow h1 rate 20mbit
for signal in TERM KILL; do
  "$DTOOL" fetch "$id" broken --machine 0 --only big >"$out" 2>"$err" &
  fetching=$!
  eventually 60 bash -c 'find broken -size +1000k -type f | grep -q big'
  kill -"$signal" "$fetching"
  code=0
  wait "$fetching" 2>/dev/null || code=$?
  [[ $signal == KILL ]] || expect_equal 130 "$code"
  expect_no_file broken/machine0/big
  eventually 20 test -s broken/machine0/.dtool-partial/.dtool-partial/big
done
began=$(stat -c %s broken/machine0/.dtool-partial/.dtool-partial/big)
fault mend h1
expect_exit 0 dtool fetch "$id" broken --machine 0 --only big
cmp broken/machine0/big "$DTOOL_LAB_FOLDER/host1/root/code/experiment_output/$id/big"
((began > 0)) || fail 'nothing was kept'
expect_no_file broken/machine0/.dtool-partial

# What is written meanwhile comes as it was at one moment, or not at all.
outputs=$DTOOL_LAB_FOLDER/host1/root/code/experiment_output/$id
on 1 bash -c "cd 'code/experiment_output/$id' && setsid bash -c 'while [[ ! -e stop ]]; do echo \$((++n)) >>growing; head -c 400000 /dev/urandom | dd of=moving conv=notrunc status=none; sleep 0.03; done' >/dev/null 2>&1 </dev/null &"
eventually 10 test -s "$outputs/moving"
expect_exit 1 dtool fetch "$id" meanwhile --machine 0 --only moving --only growing --only metrics.jsonl
expect_error 'changed whenever it was read, and did not come: moving$'
expect_error '^machine0 .*: still growing, so these came as far as they were: growing$'
expect_no_file meanwhile/machine0/moving
expect_file meanwhile/machine0/metrics.jsonl
cmp -n "$(stat -c %s meanwhile/machine0/growing)" meanwhile/machine0/growing "$outputs/growing"
touch "$outputs/stop"
sleep 0.3
# In the place of a file of mine no folder comes, and what is no longer written does.
rm meanwhile/machine0/metrics.jsonl
mkdir -p "$outputs/growing.d" && touch "$outputs/growing.d/new"
echo mine >meanwhile/machine0/growing.d
expect_exit 1 dtool fetch "$id" meanwhile --machine 0 --only moving --only growing --only growing.d
expect_error 'something of another kind \(file, link or folder\) is in the place of growing\.d$'
expect_error '^machine0 .* into .*, but not all$'
expect_no_error 'broke off'
expect_equal mine "$(cat meanwhile/machine0/growing.d)"
cmp meanwhile/machine0/moving "$outputs/moving"
cmp meanwhile/machine0/growing "$outputs/growing"
rm -r "$outputs"/{moving,growing,growing.d,stop}

# A disk that is full.
mkdir small
mount -t tmpfs -o size=2m none small
expect_exit 1 dtool fetch "$id" small --machine 0
umount small
expect_error 'No space left on device'
expect_error 'hint: free some space on this machine'

# What is missing on a host, and mistakes here.
on 3 rm -r "code/experiment_output/$id"
expect_exit 1 dtool fetch "$id" --json
expect_equal "[0, 0, 1]" "$(json '[m["exit_code"] for m in d["machines"]]')"
expect_error "there is no folder /root/code/experiment_output/$id"
expect_exit 0 dtool fetch "$id" nothing --machine 0 --only '*.nosuch' --only x.none
expect_error '^machine0 .*: no file matches --only \*\.nosuch or x\.none$'
expect_no_file nothing
expect_exit 2 dtool fetch "$id" --machine 3
expect_error "has no machine 3"
expect_error 'hint: its machines are 0 to 2'
expect_exit 2 dtool fetch no_such_run
echo >a_file
expect_exit 2 dtool fetch "$id" a_file
expect_error 'a_file is there, but is not a folder'
expect_exit 2 dtool fetch "$id" --only ''

# Machines that share their output folder: it comes once.
cd code
expect_exit 0 dtool run --follow --json --runs_on "$DTOOL_LAB_HOSTS" --no_sync --output_dir "$work/shared" -- \
  bash -c 'echo $RANK >"$DTOOL_OUTPUT_DIR/rank$RANK"'
id=$(json 'd["run_id"]')
cd ..
expect_exit 0 dtool fetch "$id" shared --json
expect_equal '[6, 0, 0]' "$(json '[m["files"] for m in d["machines"]]')"
expect_equal '[None, 0, 0]' "$(json '[m.get("same_as") for m in d["machines"]]')"
expect_error "machine2 .*: the same folder as machine0's"

# On this machine: a copy, but not into itself.
cd code
expect_exit 0 dtool run --follow --json -- bash train.sh
id=$(json 'd["run_id"]')
expect_exit 0 dtool fetch "$id" ../copy
expect_equal '{"rank": 0}' "$(cat ../copy/machine0/metrics.jsonl)"
expect_exit 2 dtool fetch "$id" "experiment_output/$id"
expect_error 'the files lie in .* already'

#!/bin/bash
# SPDX-License-Identifier: MIT
# Mirrors that are gone, forbid, send something else, answer nothing or are down are passed over, a busy one is tried
# again; where none has the file, one message names each with its reason, and the other machines are told.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/harness.sh"
. "$here/data_server.sh"
nobody=http://127.0.0.1:$(free_port)

image_experiment e.toml data "\"$server/missing/\", \"$server/forbidden\", \"$server/corrupt\", \"$nobody\", \"$server/good\""
"$trainer" e.toml --output_dir out > run.log 2>&1 || fail "exit code $?"
same_as_served data
for reason in "$server/missing/train-images: HTTP 404" "$server/forbidden/train-images: HTTP 403" \
  "$server/corrupt/train-images: another file: its sha256 is .*, not " "$nobody/train-images: .*connect"; do
  grep -q "^$reason" run.log || fail "the log lacks '$reason'"
done
[ "$(grep -c '^/missing/train-images ' requests)" = 1 ] || fail "a mirror without the file was asked twice"

: > requests
image_experiment e.toml busy "\"$server/twice_busy\""
"$trainer" e.toml --output_dir out > busy.log 2>&1 || fail "busy: exit code $?"
same_as_served busy
[ "$(grep -c '^/twice_busy/train-labels ' requests)" = 3 ] || fail "not three requests: $(cat requests)"

image_experiment e.toml moved "\"$server/redirect\""
"$trainer" e.toml --output_dir out > moved.log 2>&1 || fail "redirect: exit code $?"
same_as_served moved

# None has it: on machine 1 of two, whose folder is empty.
image_experiment e.toml '${FOLDER}' "\"$server/missing\", \"$server/corrupt\""
listener=127.0.0.1:$(free_port)
for machine in 0 1; do
  folders=(data nothing)
  FOLDER=${folders[machine]} "$trainer" e.toml --machine_id $machine --distributed_nodes 2 \
    --distributed_ip_and_port "$listener" --output_dir out > machine$machine.log 2>&1 &
  pids[machine]=$!
  started+=($!)
done
codes=()
for machine in 0 1; do
  await_exit "${pids[machine]}"
  codes[machine]=$code
done
[ "${codes[*]}" = '1 2' ] || fail "exit codes ${codes[*]}"
message="cannot download train-images: $server/missing/train-images: HTTP 404; $server/corrupt/train-images: another file: its sha256 is [0-9a-f]*, not [0-9a-f]*"
for machine in 0 1; do
  grep -q "^dtool-trainer: .*rank 1 on machine 1 .*: $message" machine$machine.log ||
    fail "machine $machine does not name each mirror with its reason: $(tail -n 5 machine$machine.log)"
done
! grep -q samples/s machine0.log || fail "machine 0 trained"
[ ! -e nothing/train-images ] && [ ! -e nothing/train-images.part ] || fail "something half done stays"

# A file that is there and another than was meant is neither used nor replaced.
image_experiment e.toml data "\"$server/good\""
echo mine > data/t10k-labels
code=0
"$trainer" e.toml --output_dir out > mine.log 2>&1 || code=$?
[ $code = 2 ] || fail "another file: exit code $code"
grep -q '^dtool-trainer: .*data/t10k-labels is another file than was meant: its sha256 is ' mine.log || fail "the file is not named"
[ "$(cat data/t10k-labels)" = mine ] || fail "the user's file was replaced"

# By the proxy that the environment names, which knows the address.
: > requests
image_experiment e.toml proxied '"http://no.such.host.invalid/good"'
http_proxy=$server "$trainer" e.toml --output_dir out > proxied.log 2>&1 || fail "by a proxy: exit code $?"
same_as_served proxied
grep -q '^http://no.such.host.invalid/good/train-images ' requests || fail "the proxy was not asked: $(cat requests)"

#!/bin/bash
# SPDX-License-Identifier: MIT
# Cut short, stalled, killed: a download goes on from the bytes that are here, where the server knows ranges, and else
# begins again.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/harness.sh"
. "$here/data_server.sh"

# all_but_one FOLDER: what is to be downloaded into it is the training images alone.
all_but_one() {
  mkdir "$1"
  cp served/{train-labels,t10k-images,t10k-labels} "$1"
}
size=$(stat -c %s served/train-images)

# A connection that is cut every 100 kB: thirty requests, more than the five tries of a mirror that makes no way.
all_but_one cut
image_experiment e.toml cut "\"$server/cut_short\""
timeout 120 "$trainer" e.toml --output_dir out > cut.log 2>&1 || fail "cut short: exit code $?"
same_as_served cut
grep -q '^/cut_short/train-images bytes=3100000-$' requests || fail "it did not go on where it stopped: $(cat requests)"
[ "$(grep -c '^/cut_short/train-images whole' requests)" = 1 ] || fail "it began again: $(cat requests)"

# Stalled half-way; without ranges.
for behaviour in stalls_once no_ranges; do
  all_but_one $behaviour
  image_experiment e.toml $behaviour "\"$server/$behaviour\"" data.stall_seconds=2
  timeout 120 "$trainer" e.toml --output_dir out > $behaviour.log 2>&1 || fail "$behaviour: exit code $?"
  same_as_served $behaviour
done
grep -q "^/stalls_once/train-images bytes=$((size / 2))-$" requests || fail "after a stall it did not go on"
grep -q "^$server/stalls_once/train-images: .*too slow" stalls_once.log || fail "the stall is not told"
[ "$(grep -c '^/no_ranges/train-images whole' requests)" = 2 ] || fail "without ranges it did not begin again: $(cat requests)"

# Killed in the middle of a download: the next run goes on.
image_experiment e.toml killed "\"$server/stalls\"" data.stall_seconds=60
"$trainer" e.toml --output_dir out > killed.log 2>&1 &
victim=$!
started+=("$victim")
bytes_here() { stat -c %s killed/train-images.part 2> /dev/null || echo 0; }
has_half() { [ "$(bytes_here)" -ge $((size / 2 - 100000)) ]; }
await 60 'half of the file' has_half
kill -KILL $victim
await_exit $victim
is_free() { flock --nonblock killed/.dtool-lock true; }
await 30 'the end of the worker' is_free
sed -i 's,/stalls",/good",' e.toml
kept=$(bytes_here)
"$trainer" e.toml --output_dir out > resumed.log 2>&1 || fail "after a kill: exit code $?"
same_as_served killed
grep -q "^/good/train-images bytes=$kept-$" requests || fail "after a kill it did not go on"

# What lies there of another file is found out and fetched from its beginning.
mkdir wrong
head -c 1000000 /dev/zero > wrong/train-images.part
image_experiment e.toml wrong "\"$server/good\""
"$trainer" e.toml --output_dir out > wrong.log 2>&1 || fail "a wrong beginning: exit code $?"
same_as_served wrong

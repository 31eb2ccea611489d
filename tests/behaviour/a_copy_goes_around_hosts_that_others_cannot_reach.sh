#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool copy` to hosts that the others cannot reach: they have all from the launcher, and a note says so. A host on which dtool's program is killed
# is named, the others have all, and later it is sent the rest.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 5
root() { printf '%s' "$DTOOL_LAB_FOLDER/host$1/root"; }
address_of() { sed -n "$1p" "$DTOOL_LAB_FOLDER/hosts"; }
size=330000000  # five parcels
mkdir data
head -c "$size" /dev/urandom >data/large

for alone in 3 4; do
  for other in 1 2 3 4 5; do
    ((other != alone)) || continue
    sudo_on $alone ip neigh replace "$(address_of $other)" lladdr 02:00:00:00:00:01 dev eth0 nud permanent
    sudo_on "$other" ip neigh replace "$(address_of $alone)" lladdr 02:00:00:00:00:01 dev eth0 nud permanent
  done
done
expect_exit 0 dtool copy --runs_on "$DTOOL_LAB_HOSTS" data sets
expect_error 'a part of it was not passed on there as planned, and came another way .*no answer from .* for 3 s'
for host in 1 2 3 4 5; do cmp data/large "$(root $host)/sets/data/large" || fail "host $host has another file"; done
for other in 1 2 3 4 5; do sudo_on "$other" ip neigh flush dev eth0 nud permanent; done

# Killed there in the middle.
rm -rf "$DTOOL_LAB_FOLDER"/host*/root/sets
link=$(ip -o route get "${DTOOL_LAB_HOSTS%%,*}" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
tc qdisc replace dev "$link" root tbf rate 300mbit burst 256kbit latency 400ms
"$DTOOL" copy --runs_on "$DTOOL_LAB_HOSTS" data sets >"$out" 2>"$err" </dev/null &
launcher=$!
has_a_part() { (($(find "$(root 2)"/sets/.~dtool~copy-*/parts -type f ! -name '*.sum' -printf '%s\n' 2>/dev/null | sort -n | tail -n 1) + 0 > 60000000)); }
eventually 60 has_a_part
# Where it only waits for requests, it is started again: so it is killed until that is given up.
is_killed_until_the_end() {
  on 2 pkill -KILL -x dtool-host || true
  ! kill -0 "$launcher" 2>/dev/null
}
eventually 60 is_killed_until_the_end
expect_ended 1 "$launcher" 'dtool copy, whose program on host 2 is killed'
expect_error "^  $(address_of 2): "
for host in 1 3 4 5; do cmp data/large "$(root $host)/sets/data/large" || fail "host $host has another file"; done
expect_no_file "$(root 2)/sets/data/large"
tc qdisc del dev "$link" root
expect_exit 0 dtool copy --json --runs_on "$DTOOL_LAB_HOSTS" data sets
(($(json 'sum(h["sent_bytes"] for h in d["hosts"])') <= size - 60000000)) || fail 'what had come was sent again'
cmp data/large "$(root 2)/sets/data/large"
expect_equal '' "$(find "$DTOOL_LAB_FOLDER"/host*/root -name '.~dtool~*')"

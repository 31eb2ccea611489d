#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool copy` to a host that the others cannot reach: it has its part from the launcher, a note says so, and after the first parcel no time is lost
# with it. A host on which dtool's program is killed is named, the others have all, and later it is sent the rest.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 5
root() { printf '%s' "$DTOOL_LAB_FOLDER/host$1/root"; }
address_of() { sed -n "$1p" "$DTOOL_LAB_FOLDER/hosts"; }
size=330000000  # five parcels
mkdir data
head -c "$size" /dev/urandom >data/large

for other in 1 2 4 5; do
  on 3 ip neigh replace "$(address_of $other)" lladdr 02:00:00:00:00:01 dev eth0 nud permanent
  on "$other" ip neigh replace "$(address_of 3)" lladdr 02:00:00:00:00:01 dev eth0 nud permanent
done
expect_exit 0 dtool copy --trace traces --runs_on "$DTOOL_LAB_HOSTS" data sets
expect_error 'a part of it was not passed on there as planned, and came another way .*no answer from .* for 3 s'
for host in 1 2 3 4 5; do cmp data/large "$(root $host)/sets/data/large" || fail "host $host has another file"; done
missed=$(cat traces/*.trace | grep -c 'ParcelReply.*no answer from' || true)
((missed >= 1 && missed <= 4)) || fail "$missed times a host waited for another one in vain"
for other in 1 2 3 4 5; do on "$other" ip neigh flush dev eth0 nud permanent; done

# Killed there in the middle.
rm -rf "$DTOOL_LAB_FOLDER"/host*/root/sets
link=$(ip -o route get "${DTOOL_LAB_HOSTS%%,*}" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
tc qdisc replace dev "$link" root tbf rate 300mbit burst 256kbit latency 400ms
"$DTOOL" copy --runs_on "$DTOOL_LAB_HOSTS" data sets >"$out" 2>"$err" </dev/null &
launcher=$!
has_a_part() { (($(find "$(root 2)/sets/.~dtool~copy/parts" -type f ! -name '*.sum' -printf '%s\n' 2>/dev/null | sort -n | tail -n 1) + 0 > 60000000)); }
eventually 60 has_a_part
on 2 pkill -KILL -x dtool-host || true
expect_ended 1 "$launcher" 'dtool copy, whose program on host 2 is killed'
expect_error "^  $(address_of 2): "
for host in 1 3 4 5; do cmp data/large "$(root $host)/sets/data/large" || fail "host $host has another file"; done
expect_no_file "$(root 2)/sets/data/large"
tc qdisc del dev "$link" root
expect_exit 0 dtool copy --json --runs_on "$DTOOL_LAB_HOSTS" data sets
(($(json 'sum(h["sent_bytes"] for h in d["hosts"])') <= size - 60000000)) || fail 'what had come was sent again'
cmp data/large "$(root 2)/sets/data/large"
expect_equal '' "$(find "$DTOOL_LAB_FOLDER"/host*/root -name '.~dtool~*')"

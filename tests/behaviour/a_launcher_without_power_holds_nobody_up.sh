#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A launcher loses its power while it sends the code, so no connection is closed: the next launch from another machine waits for half a minute and not
# until the hosts notice, and sends only what is lacking.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 4
let_h1_reach_the_others
root() { printf '%s' "$DTOOL_LAB_FOLDER/host$1/root"; }
size=30000000
head -c "$size" /dev/urandom >data
cp -a ../here "$(root 1)"
theirs 1 here
fault slow h1 rate 20mbit
on 1 sh -c 'cd ~/here && exec "$0" run --no_relay --runs_on h2,h3,h4 -- true' "$DTOOL" >"$work/first" 2>&1 </dev/null &
at_end "kill $! 2>/dev/null"
parts() { (($(find "$(root "$1")/here/.~dtool~coming" -path '*/parts/*' -printf '%s+' 2>/dev/null)0 > 8000000)); }
have_some() { parts 2 && parts 3 && parts 4; }
eventually 60 have_some
fault reboot h1

link=$(ip -o route get "$(tail -n 1 "$DTOOL_LAB_FOLDER/hosts")" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
before=$(cat "/sys/class/net/$link/statistics/tx_bytes")
began=$SECONDS
expect_exit 0 timeout 150 "$DTOOL" run --runs_on h2,h3,h4 -- true
((SECONDS - began < 60)) || fail "it waited for $((SECONDS - began)) s"
sent=$(($(cat "/sys/class/net/$link/statistics/tx_bytes") - before))
((sent < size - 5000000)) || fail "$sent bytes were sent, although some of the $size had come"
for host in 2 3 4; do cmp data "$(root $host)/here/data" || fail "host $host has another file"; done
expect_equal '' "$(find "$DTOOL_LAB_FOLDER"/host[234]/root/here -name '.~dtool~coming*')"
expect_exit 0 dtool kill --all --yes --delete

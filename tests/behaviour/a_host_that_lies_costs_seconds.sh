#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One of four hosts that pass a copy on lies: it gives others wrong bytes, a byte now and then, or nothing, says that it has all, or that all others
# lie. All hosts have what was sent, soon, and the launcher sends little more than once.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_file /usr/bin/python3
lab 4
size=20000000
head -c "$size" /dev/urandom >data
link=$(ip -o route get "${DTOOL_LAB_HOSTS%%,*}" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
uplink() { cat "/sys/class/net/$link/statistics/tx_bytes"; }
tc qdisc replace dev "$link" root tbf rate 100mbit burst 1mbit latency 400ms
root() { printf '%s' "$DTOOL_LAB_FOLDER/host$1/root"; }

expect_exit 0 dtool copy --runs_on "$DTOOL_LAB_HOSTS" data before
program=$(find "$(root 2)/.dtool/host" -name dtool-host)
[[ $(wc -w <<<"$program") == 1 ]] || fail "not one dtool-host: $program"
cp "$program" "$(root 2)/honest"
cp "$here/lying_host.py" "$(root 2)"
lie() { # MODE
  printf '#!/bin/sh\nexec /usr/bin/python3 /root/lying_host.py %s /root/honest "$@"\n' "$1" >"$program.new"
  chmod 755 "$program.new"
  mv "$program.new" "$program"
  theirs 2
}
expect_soon() { # MODE SECONDS COPIES
  local began=$SECONDS before host
  lie "$1"
  dtool disconnect >/dev/null
  before=$(uplink)
  expect_exit 0 timeout 200 "$DTOOL" copy --runs_on "$DTOOL_LAB_HOSTS" data "$1"
  ((SECONDS - began <= $2)) || fail "$1: it took $((SECONDS - began)) s"
  ((($(uplink) - before) < size * $3)) || fail "$1: $(($(uplink) - before)) bytes left the launcher for $size"
  for host in 1 2 3 4; do cmp data "$(root $host)/$1/data" || fail "$1: host $host has another file"; done
}
expect_soon wrong 20 3
expect_error 'came another way .*is not the package'
expect_soon mute 40 3
expect_soon claims 40 3
expect_soon complains 20 4
expect_soon drip 60 3
expect_error 'came another way .*sends too little'
for host in 1 3 4; do ! on $host pgrep -x dtool-relay >/dev/null || fail "a process stays on host $host"; done

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With --relay the code leaves the launcher once, however many hosts there are, and is the same everywhere; a host that another one cannot reach,
# or whose source is killed, has it another way, and a note says so; nothing stays on the hosts.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 8

# The launcher's own link: what hosts send to each other does not pass it.
link=$(ip -o route get "${DTOOL_LAB_HOSTS%%,*}" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
uplink() { cat "/sys/class/net/$link/statistics/tx_bytes"; }
tc qdisc replace dev "$link" root tbf rate 20mbit burst 64kbit latency 400ms

size=5000000
new_tree() { head -c "$size" /dev/urandom >data; }
expect_tree() {
  local host
  for host in {1..8}; do cmp data "$DTOOL_LAB_FOLDER/host$host/root/here/data" || fail "host $host has another tree"; done
}
# Neither files nor processes.
expect_nothing_left() {
  local host
  for host in {1..8}; do
    ! compgen -G "$DTOOL_LAB_FOLDER/host$host/root/here/.~dtool~*" >/dev/null || fail "something stays on host $host"
    expect_no_server "$host"
  done
}
expect_no_server() {
  local host
  for host; do
    ! on "$host" pgrep -x dtool-relay >/dev/null || fail "a process stays on host $host: $(on "$host" pgrep -xa dtool-relay)"
  done
}
# $1: how often the tree may leave the launcher, which without hosts that pass it on is eight times. On a busy machine a host may come so late that
# all others are through, and is sent it from here.
push() {
  local before
  new_tree
  before=$(uplink)
  expect_exit 0 dtool run --relay --runs_on "$DTOOL_LAB_HOSTS" -- true
  ((($(uplink) - before) * 2 < size * (2 * $1 + 1))) || fail "$(($(uplink) - before)) bytes left the launcher for a tree of $size"
  expect_tree
  expect_nothing_left
}
# The tree is where it was not, so that a package is what each host gets.
forget() { rm -rf "$DTOOL_LAB_FOLDER"/host*/root/here "$DTOOL_LAB_FOLDER"/host*/root/.dtool/trees; }

push 4
expect_no_error 'another way'

# Changed; hosts need no programs for it.
for host in {1..4}; do for program in perl python3 openssl tar; do fault hide "h$host" $program; done; done
push 4
expect_no_error 'another way'

# A firewall: packets between host 3 and the others vanish.
forget
address_of() { sed -n "$1p" "$DTOOL_LAB_FOLDER/hosts"; }
for other in 1 2 4 5 6 7 8; do
  sudo_on 3 ip neigh replace "$(address_of $other)" lladdr 02:00:00:00:00:01 dev eth0 nud permanent
  sudo_on "$other" ip neigh replace "$(address_of 3)" lladdr 02:00:00:00:00:01 dev eth0 nud permanent
done
push 6
expect_error 'came another way .*no answer from .* for 3 s'
for other in {1..8}; do sudo_on "$other" ip neigh flush dev eth0 nud permanent; done

# Who passes it on is killed in the middle.
forget
size=20000000
new_tree
"$DTOOL" run --relay --runs_on h5,h6,h7,h8 -- true >"$out" 2>"$err" </dev/null &
launcher=$!
# On each host.
arrives() {
  local host
  for host in {5..8}; do
    (($(find "$DTOOL_LAB_FOLDER/host$host/root/here/.~dtool~coming" -path '*/parts/*' -printf '%s+' 2>/dev/null)0 > 3000000)) || return 1
  done
}
eventually 60 arrives
for host in 5 6 7 8; do on "$host" pkill -KILL -x dtool-relay || true; done
wait "$launcher" || fail "it failed: $(cat "$err")"
for host in {5..8}; do cmp data "$DTOOL_LAB_FOLDER/host$host/root/here/data" || fail "host $host has another tree"; done
expect_error 'came another way .*broke off'
expect_nothing_left

# The launcher is killed in the middle: all ends by itself, the old tree stays, and the next push goes on from there.
cp data "$work/old"
new_tree
"$DTOOL" run --relay --runs_on h5,h6,h7,h8 -- true >/dev/null 2>&1 </dev/null &
launcher=$!
eventually 60 arrives
kill -KILL "$launcher"
wait "$launcher" || true
eventually 60 expect_no_server {5..8}
for host in {5..8}; do cmp "$work/old" "$DTOOL_LAB_FOLDER/host$host/root/here/data" || fail "host $host has a broken tree"; done
before=$(uplink)
expect_exit 0 dtool run --relay --runs_on h5,h6,h7,h8 -- true
((($(uplink) - before) < size)) || fail "$(($(uplink) - before)) bytes left the launcher, although some of the $size had come"
for host in {5..8}; do cmp data "$DTOOL_LAB_FOLDER/host$host/root/here/data" || fail "host $host has another tree"; done
expect_nothing_left

expect_exit 2 dtool run --relay --no_sync --runs_on h1 -- true
expect_exit 0 dtool kill --all --yes --delete

#!/usr/bin/env bash
# With --relay the code leaves the launcher once, however many hosts there are, and is the same everywhere; a host that another one cannot reach,
# that is given other bytes, whose source is killed, or that lacks what it takes has it another way, and a note says so; nothing stays on the hosts.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program openssl
needs_program perl
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
    ! compgen -G "$DTOOL_LAB_FOLDER/host$host/root/here/.~dtool~.*" >/dev/null || fail "a package stays on host $host"
    ! on "$host" pgrep -f 'listen_on|/dev/tcp|flock' >/dev/null || fail "a process stays on host $host: $(on "$host" pgrep -fa 'listen_on|/dev/tcp|flock')"
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

# Changed, and by the other program that listens.
for host in {1..4}; do fault hide "h$host" perl; done
push 4
expect_no_error 'another way'

# Nothing to listen with on one host, no openssl on another, which has it from here.
fault hide h1 python3
fault hide h2 openssl
push 6
expect_error '(h2|198[.0-9]*\.2): the code was not passed on .*openssl is not there'

# A firewall: packets between host 3 and the others vanish.
forget
address_of() { sed -n "$1p" "$DTOOL_LAB_FOLDER/hosts"; }
for other in 1 2 4 5 6 7 8; do
  on 3 ip neigh replace "$(address_of $other)" lladdr 02:00:00:00:00:01 dev eth0 nud permanent
  on "$other" ip neigh replace "$(address_of 3)" lladdr 02:00:00:00:00:01 dev eth0 nud permanent
done
push 6
expect_error 'came another way .*no answer from .* for 3 s'
for other in {1..8}; do on "$other" ip neigh flush dev eth0 nud permanent; done

# Hostile hosts: whatever they are asked for, they hand out other bytes.
forget
for host in {5..8}; do
  root=$DTOOL_LAB_FOLDER/host$host/root
  mkdir "$root/bin"
  head -c $((2 * size)) /dev/urandom >"$root/bin/other"
  # shellcheck disable=SC2016
  printf '%s\n' '#!/bin/bash' 'exec /usr/bin/perl "${@:1:2}" "$HOME/bin/other"' >"$root/bin/perl"
  chmod +x "$root/bin/perl"
  # shellcheck disable=SC2016
  echo 'PATH=$HOME/bin:$PATH' >"$root/.bashrc"
done
new_tree
expect_exit 0 dtool run --relay --runs_on h5,h6,h7,h8 -- true
for host in {5..8}; do cmp data "$DTOOL_LAB_FOLDER/host$host/root/here/data" || fail "host $host has another tree"; done
expect_error 'came another way .*is not the package'
rm "$DTOOL_LAB_FOLDER"/host{5..8}/root/.bashrc

# Who passes it on is killed in the middle.
forget
size=15000000
new_tree
"$DTOOL" run --relay --runs_on h5,h6,h7,h8 -- true >"$out" 2>"$err" </dev/null &
launcher=$!
arrives() { (($(cat "$DTOOL_LAB_FOLDER"/host[5-8]/root/here/.~dtool~.*/package | wc -c) > 4000000)); }
eventually 60 arrives
for host in 5 6 7 8; do on "$host" pkill -KILL -f listen_on || true; done
wait "$launcher" || fail "it failed: $(cat "$err")"
for host in {5..8}; do cmp data "$DTOOL_LAB_FOLDER/host$host/root/here/data" || fail "host $host has another tree"; done
expect_error 'came another way .*broke off'
expect_nothing_left

# The launcher is killed in the middle: all ends by itself, and the old tree stays.
cp data "$work/old"
new_tree
"$DTOOL" run --relay --runs_on h5,h6,h7,h8 -- true >/dev/null 2>&1 </dev/null &
launcher=$!
eventually 60 arrives
kill -KILL "$launcher"
wait "$launcher" || true
eventually 60 expect_nothing_left
for host in {5..8}; do cmp "$work/old" "$DTOOL_LAB_FOLDER/host$host/root/here/data" || fail "host $host has a broken tree"; done

expect_exit 2 dtool run --relay --no_sync --runs_on h1 -- true
expect_exit 2 env PATH="$work" "$DTOOL" run --relay --runs_on h1,h5 -- true
expect_error 'relay needs openssl on this machine'
expect_exit 0 dtool kill --all --yes

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A server that drops connections before its greeting (MaxStartups) is tried again; one that refuses is asked once.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 2
connects_anew

mapfile -t address < <(cat "$DTOOL_LAB_FOLDER/hosts")
log=$DTOOL_LAB_FOLDER/host1/sshd.log
printf 'Host m*\n  HostName %s\n' "${address[0]}" | cat - "$HOME/.ssh/config" >"$work/config"
mv "$work/config" "$HOME/.ssh/config"
logged() { grep -c "$1" "$log" || true; }

# Six at once where two may wait.
fault restart-sshd h1 -o MaxStartups=2:100:2 -o LogLevel=VERBOSE
expect_exit 0 dtool command --runs_on 'm[1-6]' --command hostname
expect_equal 6 "$(grep -c -- '-1$' "$out")"
(($(logged 'MaxStartups') > 0)) || fail 'sshd dropped nothing: the test tests nothing'

# Dropped each time: given up, with the reason.
fault restart-sshd h1 -o MaxStartups=1:100:1 -o LogLevel=VERBOSE
exec {silent}<>"/dev/tcp/${address[0]}/22"  # takes the only place
expect_exit 1 timeout 120 "$DTOOL" command --runs_on h1,h2 --command hostname
expect_output '^h2: '
expect_error 'h1: .*closed the connection before its greeting, 6 times'
expect_error 'hint: .*MaxStartups'
exec {silent}>&-

# Refused is refused.
fault restart-sshd h1 -o LogLevel=VERBOSE
before=$(logged 'Connection from')
expect_exit 1 dtool command --runs_on nobody-here@h1 --command hostname
expect_equal $((before + 1)) "$(logged 'Connection from')"
fault forget h1
expect_exit 1 dtool command --runs_on h1 --command hostname
expect_equal $((before + 2)) "$(logged 'Connection from')"
resets() { on h1 awk '/^Tcp:/ { if (++line == 2) print $15 }' /proc/net/snmp; }
fault stop-sshd h1
before=$(resets)
expect_exit 1 dtool command --runs_on h1 --command hostname
expect_equal $((before + 1)) "$(resets)"

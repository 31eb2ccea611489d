#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A host that refuses, stays silent, shows a changed or unknown key, or lets nobody in is a row with its reason; the others go on.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program jq
lab 5
connects_anew

mapfile -t address < <(cat "$DTOOL_LAB_FOLDER/hosts")
known=$HOME/.ssh/known_hosts
fault stop-sshd h2
fault rekey h3
fault forget h4
# What the user says of checking counts for nothing.
sed -i 's/StrictHostKeyChecking yes/StrictHostKeyChecking no/' "$HOME/.ssh/config"
expect_exit 0 grep 'StrictHostKeyChecking no' "$HOME/.ssh/config"

all="h1,h2,h3,h4,$DTOOL_LAB_DEAD,no-such-host.invalid,nobody-here@h5,h5"
expect_exit 1 dtool command --connect_timeout 4 --runs_on "$all" --command 'echo hello from $(hostname)'
expect_output '^h1: hello from lab-.*-1$'
expect_output '^h5: hello from lab-.*-5$'
expect_equal 2 "$(wc -l <"$out")"
expect_error '^dtool: 6 of 8 hosts failed: echo hello from'
expect_error '^  h2: cannot connect to port 22: Connection refused'
expect_error "^  h3: the host key ssh-ed25519 SHA256:.* is not the one in $known"
expect_error "ssh-keygen -R ${address[2]} -f $known"
expect_error "^  h4: the host key is not in $known"
expect_error 'hint: .*dtool trust --runs_on h4$'
expect_error "^  $DTOOL_LAB_DEAD: no answer from port 22 in time"
expect_error '^  no-such-host.invalid: cannot resolve no-such-host.invalid'
expect_error '^  nobody-here@h5: user nobody-here was not let in; tried .*id_ed25519'

expect_exit 1 dtool command --json --connect_timeout 4 --runs_on "$all" --command 'echo hello'
expect_equal 'none unreachable host_key_changed host_key_unknown connect_timed_out unreachable not_authenticated none' \
  "$(jq -r '.hosts[].failure' "$out" | xargs)"
expect_equal 1 "$(jq .exit_code "$out")"
expect_equal null "$(jq '.hosts[1].exit_code' "$out")"
expect_equal hello "$(jq -r '.hosts[7].stdout' "$out")"

# Nothing was added behind the user's back.
expect_exit 1 grep -F "${address[3]}" "$known"

# A key that the host does not know.
ssh-keygen -q -t ed25519 -N '' -f "$work/stranger"
expect_exit 1 dtool command --json --runs_on "root@${address[0]},root@${address[4]}" --command true \
  --ssh_cmd "ssh -F none -i $work/stranger -o UserKnownHostsFile=$known"
expect_equal 'not_authenticated not_authenticated' "$(jq -r '.hosts[].failure' "$out" | xargs)"
expect_output 'stranger'

# The same failure of many hosts is told once.
fault stop-sshd h1
expect_exit 1 dtool command --runs_on "${address[0]},${address[1]}" --command true
expect_error "^  ${address[0]%.*}\.\[${address[0]##*.}-${address[1]##*.}\]: cannot connect"

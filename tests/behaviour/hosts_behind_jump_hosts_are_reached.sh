#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ProxyJump over one hop and two: one session to the jump host carries all hosts behind it, and its failure is theirs.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program jq
lab 16 --behind
connects_anew

mapfile -t address < <(cat "$DTOOL_LAB_FOLDER/hosts")
log=$DTOOL_LAB_FOLDER/host1/sshd.log
config=$HOME/.ssh/config
connections() { grep -c 'Connection from' "$log" || true; }

# sshd's own default lets ten strangers wait.
fault restart-sshd h1 -o MaxStartups=10:30:100 -o LogLevel=VERBOSE
expect_exit 0 dtool command --runs_on 'h[2-16]' --command hostname
expect_equal 15 "$(sort -u "$out" | wc -l)"
expect_output '^h16: lab-.*-16$'
expect_equal 1 "$(connections)"

# The jump host itself among the hosts, and -J by hand.
expect_exit 0 dtool command --runs_on 'h[1-3]' --command hostname
expect_exit 0 dtool command --ssh_cmd 'ssh -J h1' --runs_on "${address[1]}" --command hostname
expect_output 'lab-.*-2$'

# Two hops: named in a list, or by the jump host's own setting.
printf 'Host far\n  HostName %s\n  ProxyJump h1,h2\nHost farther\n  HostName %s\n  ProxyJump h2\n' "${address[2]}" "${address[3]}" |
  cat - "$config" >"$work/config"
mv "$work/config" "$config"
expect_exit 0 dtool command --runs_on far,farther --command 'hostname; echo ${SSH_CONNECTION%% *}'
expect_output '^far: lab-.*-3$'
expect_output '^farther: lab-.*-4$'
expect_output "^far: ${address[1]%.*}\."

# 100 kB over both, each way whole.
expect_exit 0 dtool command --runs_on far --command 'seq 100000'
expect_equal "$(seq 100000 | sha256sum)" "$(sed 's/^far: //' "$out" | sha256sum)"

# A failure of the jump host is told for those behind it, with its own name in the hint.
fault stop-sshd h3
fault forget h2
expect_exit 1 dtool command --json --runs_on h2,h3,h4,far --command hostname
expect_equal 'host_key_unknown unreachable none host_key_unknown' "$(jq -r '.hosts[].failure' "$out" | xargs)"
expect_exit 1 dtool command --runs_on far,farther --command hostname
expect_error 'far,farther: jump host h2: the host key is not in'
expect_error 'hint: .*dtool trust --runs_on h2$'
fault stop-sshd h1
expect_exit 1 dtool command --runs_on 'h[4-6]' --command hostname
expect_error 'h\[4-6\]: jump host h1: cannot connect to port 22: Connection refused'

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool trust` shows the fingerprint that ssh-keygen shows, adds unknown keys after a yes, and never replaces one.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program jq
needs_program script
lab 4
connects_anew

mapfile -t address < <(cat "$DTOOL_LAB_FOLDER/hosts")
known=$HOME/.ssh/known_hosts
fingerprint() { ssh-keygen -lf "$DTOOL_LAB_FOLDER/host$1/host_key.pub" | cut -d' ' -f2; }
pattern() { fingerprint "$1" | sed 's/+/[+]/g'; }
answer() {
  local typed=$1
  shift
  { sleep 0.7; printf '%s\n' "$typed"; sleep 2; } | timeout 60 script -qec "$(printf '%q ' "$@")" /dev/null
}

expect_exit 0 dtool trust --runs_on h1,h2,local
expect_error '^h1: known$'

# Without a terminal, nothing is added; nor after a no.
fault forget h1
fault forget h2
cp "$known" "$work/known_before"
expect_exit 1 dtool trust --runs_on 'h[1-3]'
expect_error "h1: ssh-ed25519 $(pattern 1)$"
expect_error "h2: ssh-ed25519 $(pattern 2)$"
expect_error 'h3: known'
expect_error 'no key was added'
expect_error 'hint: --yes accepts'
expect_exit 1 dtool trust --json --runs_on 'h[1-3]'
expect_equal "unknown $(fingerprint 1)" "$(jq -r '.hosts[0] | "\(.state) \(.fingerprint)"' "$out")"
expect_equal 0 "$(jq .added "$out")"
run answer n "$DTOOL" trust --runs_on h1
expect_output "$(pattern 1)"
expect_equal "$(cat "$work/known_before")" "$(cat "$known")"

# After a yes they are, once, and hosts can be used.
expect_exit 1 dtool command --runs_on h1 --command true
run answer y "$DTOOL" trust --runs_on h1
expect_output 'accept 1 key\?'
expect_output "added 1 key to $known"
expect_exit 0 dtool command --runs_on h1 --command true
expect_exit 0 dtool trust --yes --runs_on h1,h2
expect_exit 0 dtool trust --yes --runs_on h1,h2
expect_equal 4 "$(wc -l <"$known")"
expect_exit 0 ssh h2 true

# A file and a folder that are not there yet are the user's alone; a last line without its end stays whole.
rm "$known"
umask 000
expect_exit 0 dtool trust --yes --json --runs_on 'h[1-4]'
expect_equal 4 "$(jq .added "$out")"
expect_equal 600 "$(stat -c %a "$known")"
expect_exit 0 dtool trust --yes --ssh_cmd "ssh -o UserKnownHostsFile=$work/new/known" --runs_on h1
expect_equal '700 600' "$(stat -c %a "$work/new" "$work/new/known" | xargs)"
umask 022
printf '%s' "$(head -n 1 "$known")" >"$known.new"
mv "$known.new" "$known"
expect_exit 0 dtool trust --yes --runs_on 'h[1-4]'
expect_exit 0 dtool command --runs_on 'h[1-4]' --command true

# A changed key is refused, whatever is said, and the others are added.
fault rekey h3
fault forget h4
sed -i "/${address[3]}/d" "$known"
expect_exit 1 dtool trust --yes --runs_on h3,h4
expect_error "h3: the host key ssh-ed25519 $(pattern 3) is not the one in $known"
expect_error "hint: .*ssh-keygen -R ${address[2]} -f $known"
expect_error 'added 1 key'
expect_exit 0 dtool command --runs_on h4 --command true
expect_exit 1 dtool command --runs_on h3 --command true
# The hint's mend works.
ssh-keygen -R "${address[2]}" -f "$known" >"$work/log" 2>&1
expect_exit 0 dtool trust --yes --runs_on h3
expect_exit 0 dtool command --runs_on h3 --command true

# The machine's own key is good for its other ports, as for ssh; where none is known, each port has a line of its own.
fault restart-sshd h1 -o Port=2200
expect_exit 0 dtool command --runs_on h1:2200 --command true
fault forget h1
sed -i "/${address[0]}/d" "$known"
expect_exit 1 dtool command --runs_on h1:2200 --command true
expect_error 'dtool trust --runs_on h1:2200'
expect_exit 0 dtool trust --yes --runs_on h1:2200
expect_exit 0 grep -F "[${address[0]}]:2200 ssh-ed25519" "$known"
expect_exit 0 dtool command --runs_on h1:2200 --command true
fault stop-sshd h1
rm "$DTOOL_LAB_FOLDER/host1/host_key"
fault restart-sshd h1 -o Port=2200
expect_exit 1 dtool trust --yes --runs_on h1:2200
expect_error "ssh-keygen -R '\[${address[0]}\]:2200' -f $known"

# Hosts that are not reached are named, and known_hosts that cannot be written is no success.
fault stop-sshd h2
expect_exit 1 dtool trust --yes --runs_on h2,h3
expect_error 'h2: cannot connect to port 22: Connection refused'
expect_error 'h3: known'
fault forget h3
sed -i "/${address[2]}/d" "$known"
touch "$work/file"
for file in "$work/file/known" "$work/no/such/folder/known"; do
  run dtool trust --yes --ssh_cmd "ssh -o UserKnownHostsFile=$file" --runs_on h3
  ((code != 0)) || fail "$file took a key"
  expect_error "cannot write $file"
done

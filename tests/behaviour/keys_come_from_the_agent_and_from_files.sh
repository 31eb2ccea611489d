#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Keys are taken from the agent and from files; an encrypted file is passed over with a hint, and no passphrase is asked for.
source "$(dirname "$0")/harness.sh"
needs_program ssh-agent
needs_program script
lab 2
connects_anew

config=$HOME/.ssh/config
key=$HOME/.ssh/id_ed25519
without_identity() { sed '/Identit/d' "$DTOOL_LAB_FOLDER/lab_config"; }
cp "$config" "$DTOOL_LAB_FOLDER/lab_config"

# The usual file, by no more than its name.
without_identity >"$config"
expect_exit 0 dtool command --runs_on h1,h2 --command hostname

# Encrypted: passed over, on a terminal too.
cp "$key" "$work/plain_key"
ssh-keygen -q -p -P '' -N 'pass phrase' -f "$key"
expect_exit 1 dtool command --runs_on h1,h2 --command hostname
expect_error "user .* was not let in; tried $key \(encrypted; add it to the agent with ssh-add\)"
expect_exit 1 timeout 60 script -qec "$(printf '%q ' "$DTOOL" command --runs_on h1 --command hostname)" /dev/null
expect_output 'was not let in'
cp "$DTOOL_LAB_FOLDER/lab_config" "$config"
expect_exit 1 dtool command --runs_on h1 --command hostname
expect_error 'encrypted; add it to the agent with ssh-add'

# The agent has it.
eval "$(ssh-agent -a "$work/agent")" >/dev/null
agent=$SSH_AGENT_PID
at_end "kill $agent"
ssh-add -q "$work/plain_key"
expect_exit 0 dtool command --runs_on h1,h2 --command hostname
without_identity >"$config"
expect_exit 0 dtool command --runs_on h1,h2 --command 'echo "[$SSH_AUTH_SOCK]"'
expect_output '^h1: \[\]$'
rm "$key" "$key.pub"
expect_exit 0 dtool command --runs_on h1,h2 --command hostname

# Other keys in it do no harm; IdentityAgent names another.
for ((i = 0; i < 3; i++)); do
  ssh-keygen -q -t ed25519 -N '' -f "$work/other$i"
done
ssh-add -q -D
ssh-add -q "$work/other0" "$work/other1" "$work/other2" "$work/plain_key"
expect_exit 0 dtool command --runs_on h1,h2 --command hostname
expect_exit 0 env -u SSH_AUTH_SOCK "$DTOOL" command --ssh_cmd "ssh -o IdentityAgent=$SSH_AUTH_SOCK" --runs_on h1 --command hostname
expect_exit 1 dtool command --ssh_cmd 'ssh -o IdentityAgent=none' --runs_on h1 --command hostname
expect_error 'tried no key, because none was found'

# More keys than the server lets anybody try: that is told, at once. With IdentitiesOnly the agent offers the named ones alone, known by the
# public file, by an encrypted private one, or by a public one that is named itself.
for ((i = 3; i < 8; i++)); do
  ssh-keygen -q -t ed25519 -N '' -f "$work/other$i"
  ssh-add -q "$work/other$i"
done
ssh-add -q -d "$work/plain_key"
ssh-add -q "$work/plain_key"
expect_exit 1 timeout -k 1 60 "$DTOOL" command --connect_timeout 300 --runs_on h1 --command hostname
expect_error 'was not let in: the server ended the log-in: Too many authentication failures; tried the agent$'
expect_error '^ *hint: .*IdentitiesOnly yes'
ssh-keygen -y -f "$work/plain_key" >"$work/named.pub"
cp "$work/plain_key" "$work/encrypted"
ssh-keygen -q -p -P '' -N 'pass phrase' -f "$work/encrypted"
for named in "$work/named" "$work/named.pub" "$work/encrypted"; do
  expect_exit 0 timeout -k 1 60 "$DTOOL" command --ssh_cmd "ssh -o IdentitiesOnly=yes -i $named" --connect_timeout 300 --runs_on h1 --command hostname
done
expect_exit 1 timeout -k 1 60 "$DTOOL" command --ssh_cmd "ssh -o IdentitiesOnly=yes -i $work/other9" --connect_timeout 300 --runs_on h1 --command hostname
expect_no_error 'Too many'

# An agent that is gone, or answers nobody, is no more than a missing one.
expect_exit 1 env SSH_AUTH_SOCK="$work/no_agent" "$DTOOL" command --runs_on h1 --command hostname
expect_error 'was not let in'
expect_exit 0 env SSH_AUTH_SOCK="$work/no_agent" "$DTOOL" command --ssh_cmd "ssh -i $work/plain_key" --runs_on h1 --command hostname

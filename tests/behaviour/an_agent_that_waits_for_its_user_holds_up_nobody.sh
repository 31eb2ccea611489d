#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An agent that asks its user, or that nobody answers at, holds up its own hosts alone: the others go on, the user is told after a second, both
# signals end it; a signature that is refused is named; and no connection to the agent outlives a log-in, kept connections included.
source "$(dirname "$0")/harness.sh"
needs_program ssh-agent
lab 2
connects_anew

eval "$(ssh-agent -a "$work/real_agent")" >/dev/null
at_end "kill $SSH_AGENT_PID"
ssh-add -q "$HOME/.ssh/id_ed25519"
agent=$work/agent
python3 "$source_folder/tests/behaviour/fake_agent.py" "$agent" "$work/real_agent" "$work" &
at_end "kill $!"
eventually 10 test -S "$agent"
unset SSH_AUTH_SOCK
# By another name, h1 is a host for which only the agent has a key.
{
  printf 'Host asked\n  IdentitiesOnly no\n  IdentityAgent %s\n' "$agent"
  sed -n '/^Host h1$/,/^ *HostName/p' "$HOME/.ssh/config" | tail -n +2
  echo '  HostKeyAlias h1'
  sed 's/^ *IdentityFile/Match originalhost h*\n&/' "$HOME/.ssh/config"
} >"$work/config"
cp "$work/config" "$HOME/.ssh/config"
begin() {
  env --default-signal=INT "$DTOOL" "$@" >"$out" 2>"$err" &
  pid=$!
}

expect_exit 0 timeout -k 1 60 "$DTOOL" command --runs_on asked,h2 --command 'echo there'
expect_output '^asked: there$'

for what in sign list connect; do
  echo $what >"$work/stall"
  [[ $what != connect ]] || eventually 10 test -e "$work/takes_nobody"
  begin command --runs_on asked,h2 --command 'echo there'
  eventually 20 grep -q '^h2: there$' "$out"
  eventually 20 grep -q '^waiting for the ssh-agent to ' "$err"
  expect_no_output '^asked'
  rm "$work/stall"
  expect_ended 0 "$pid" "with a stalled $what"
  expect_output '^asked: there$'
done
expect_error '^waiting for the ssh-agent to name its keys$'

# Either signal, and nothing about it in what --quiet leaves and in a document.
echo sign >"$work/stall"
for signals in 'TERM TERM' 'INT INT'; do
  begin command --json --runs_on asked,h2 --command 'echo there'
  eventually 20 grep -q '^waiting for the ssh-agent to sign for asked$' "$err"
  for signal in $signals; do
    sleep 0.3
    kill "-$signal" "$pid" 2>/dev/null || true
  done
  eventually 20 bash -c "! kill -0 $pid"
  expect_ended 130 "$pid"
done
begin command --quiet --runs_on asked,h2 --command 'echo there'
eventually 20 grep -qx 1 "$work/clients"
rm "$work/stall"
expect_ended 0 "$pid"
expect_no_error 'waiting'

# From here on the agent alone has the key.
rm "$HOME/.ssh/id_ed25519"
touch "$work/refuse"
expect_exit 1 timeout -k 1 60 "$DTOOL" command --runs_on asked --command true
expect_error 'was not let in; tried .*the agent \(it refused to sign\)'
rm "$work/refuse"

# Whoever waits for an agent's connections to end, as `ssh -A` does, is not kept by a keeper.
keeps_connections
expect_exit 0 timeout -k 1 60 "$DTOOL" command --runs_on asked --command true
[[ -n $(keepers) ]] || fail 'no connection was kept'
eventually 10 grep -qx 0 "$work/clients"

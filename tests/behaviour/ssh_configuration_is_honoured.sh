#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# $HOME/.ssh/config says how a host is reached, --ssh_cmd wins over it, and the first value wins; nothing is forwarded, nothing asked.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 2
connects_anew

mapfile -t address < <(cat "$DTOOL_LAB_FOLDER/hosts")
config=$HOME/.ssh/config
cp "$config" "$work/lab_config"
fault restart-sshd h2 -o Port=2200 -o 'AcceptEnv=*' -o AllowAgentForwarding=yes
mkdir "$work/keys"
mv "$HOME/.ssh/id_ed25519" "$work/keys/secret"
echo "[${address[1]}]:2200 $(cut -d' ' -f1,2 "$DTOOL_LAB_FOLDER/host2/host_key.pub")" >"$work/keys/hosts"

# HostName, User, Port, IdentityFile, UserKnownHostsFile; ~ is $HOME, tokens are filled in.
cat >"$config" <<END
Match host none.invalid
  Port 1
Host gpu? !gpu3
  HostName ${address[1]}
  User root
  Port 2200
  UserKnownHostsFile $work/keys/hosts
  IdentityFile $work/%r/nothing
  IdentityFile $work/keys/secret
Host gpu*
  Port 7
  SendEnv SECRET
  ForwardAgent yes
  RemoteCommand echo not this
  RequestTTY force
END
expect_exit 0 dtool command --runs_on gpu1,gpu2 --command 'hostname; id -un'
expect_output '^gpu1: lab-.*-2$'
expect_output '^gpu2: root$'
expect_exit 1 dtool command --runs_on gpu3 --command hostname
expect_exit 1 dtool command --runs_on gpu1:7 --command hostname
expect_error 'cannot connect to port 7'
expect_error "address ${address[1]}"
expect_exit 1 dtool command --runs_on ann@gpu1 --command hostname
expect_error 'user ann was not let in'

# Nothing is forwarded, and a command has no terminal.
export SECRET=told
expect_exit 0 dtool command --runs_on gpu1 --command 'echo "[$SECRET$SSH_AUTH_SOCK$DISPLAY]"; tty; true'
expect_output '^gpu1: \[\]$'
expect_output 'not a tty'
unset SECRET

# Other files, and settings by hand.
mv "$config" "$work/elsewhere"
expect_exit 1 dtool command --runs_on gpu1 --command hostname
expect_error 'cannot resolve gpu1'
expect_exit 0 dtool command --ssh_cmd "ssh -F $work/elsewhere" --runs_on gpu1 --command hostname
expect_exit 0 dtool command --ssh_cmd "ssh -F none -p 2200 -i $work/keys/secret -o UserKnownHostsFile=$work/keys/hosts root@{addr}" \
  --runs_on "${address[1]}" --command hostname
expect_exit 1 dtool command --ssh_cmd "ssh -F $work/elsewhere -l ann -o 'Port 2201'" --runs_on gpu1 --command hostname
expect_error 'cannot connect to port 2201'
printf '[ssh]\nconfig_file = "%s"\n' "$work/elsewhere" >dtool.toml
expect_exit 0 dtool trust --settings --yes
expect_exit 0 dtool command --runs_on gpu1 --command hostname
rm dtool.toml

# ConnectTimeout, over which the flag wins, fractions of a second included.
printf 'ConnectTimeout 1\n' | cat - "$work/lab_config" >"$config"
expect_exit 1 dtool command --runs_on "$DTOOL_LAB_DEAD" --command true
expect_error 'no answer from port 22 in time'
sed -i 's/ConnectTimeout 1/ConnectTimeout 300/' "$config"
expect_exit 1 timeout 60 "$DTOOL" command --connect_timeout 0.5 --runs_on "$DTOOL_LAB_DEAD" --command true
expect_error 'no answer from port 22 in time'

# What only ssh does is said where that may not be used.
printf 'Host h1\n  ProxyCommand nc %%h %%p\n' | cat - "$work/lab_config" >"$config"
expect_exit 1 dtool command --ssh_program libssh --runs_on h1 --command true
expect_error 'ProxyCommand nc .*which only the ssh program does'

# A configuration that cannot be read starts nothing.
for line in 'Port many' 'Host "h1' 'Match sometimes'; do
  printf '# a comment\n%s\n' "$line" >"$config"
  expect_exit 2 dtool command --runs_on h1 --command true
  expect_error "^dtool: $config:2: "
done
expect_exit 2 dtool command --ssh_cmd "ssh -F $work/no_such_file" --runs_on h1 --command true
expect_error "$work/no_such_file"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Servers, log-in shells and SSH settings that `ssh` copes with are used, and what cannot work is named: MaxSessions 1 and 0, users and
# algorithms that libssh does not take, start-up files that read, print, redirect or limit, a log-in shell that runs nothing, a screen
# that does not start, one machine under two names. Callers that ignore SIGCHLD do no harm.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 2
config=$HOME/.ssh/config
cp "$config" "$work/lab_config"
h1=$(sed -n 1p "$DTOOL_LAB_FOLDER/hosts")
prepends() { cat - "$work/lab_config" >"$config"; }
head -c 300000 /dev/urandom >data

# ---- one session a connection: a request may come before the server has seen the end of the session before
fault restart-sshd h1 -o MaxSessions=1
for program in libssh ssh; do
  for keep in 0 60; do
    mkdir -p -m 700 "$HOME/.dtool"
    printf '[connections]\nkeep = %s\n' "$keep" >"$HOME/.dtool/config.toml"
    for ((i = 0; i < 4; i++)); do
      expect_exit 0 dtool run --follow --runs_on h1 --ssh_program $program -- echo "try $i"
      rm -f "data$((i - 1))" && cp data "data$i"
      expect_exit 0 dtool copy "data$i" "/root/copied.$program.$keep" --runs_on h1 --ssh_program $program
    done
    rm -f data[0-9]
    dtool disconnect --quiet || true
  done
done
connects_anew
fault restart-sshd h1 -o MaxSessions=0
for program in libssh ssh; do
  expect_exit 1 dtool command --runs_on h1 --ssh_program $program --command true
  expect_error 'the server opens no session: '
  expect_error 'hint: .*MaxSessions 0'
done
fault restart-sshd h1 -o AuthenticationMethods=publickey,password -o PasswordAuthentication=yes -o PermitRootLogin=yes
expect_exit 1 dtool command --runs_on h1 --command true
expect_error 'took a key, and asks for a second factor'
expect_error 'hint: .*--ssh_program ssh'
fault restart-sshd h1

# ---- a caller that ignores SIGCHLD
for hosts in local h1; do
  expect_exit 0 timeout 60 env --ignore-signal=CHLD "$DTOOL" run --follow --runs_on $hosts -- bash -c 'true & wait $!; echo "rank $RANK has waited"'
  expect_output 'rank 0 has waited'
done
expect_exit 0 timeout 60 env --ignore-signal=CHLD "$DTOOL" command --runs_on h1 --ssh_program ssh --command true

# ---- users and algorithms
{ cat /etc/passwd; printf '%s:x:0:0::/root:/bin/bash\n' 'LAB\jane' "o'brien" 'mary ann'; } >"$work/passwd"
sudo_on h1 mount --bind "$work/passwd" /etc/passwd
for user in 'LAB\jane' "o'brien" 'mary ann'; do
  printf 'Host h1\n  User "%s"\n' "$user" | prepends
  expect_exit 0 dtool command --runs_on h1 --command 'echo "in as $USER"'
  expect_output "in as ${user//\\/\\\\}\$"
done
sudo_on h1 umount /etc/passwd
printf 'Host h1\n  AddressFamily inet6\n' | prepends
expect_exit 1 dtool command --runs_on h1 --command true
expect_error 'cannot resolve'
fault restart-sshd h1 -o Ciphers=aes256-ctr -o LogLevel=VERBOSE
printf 'Host h1\n  Ciphers aes128-ctr,aes256-ctr\n  AddressFamily inet\n' | prepends
expect_exit 0 dtool command --runs_on h1 --command true
printf 'Host h1\n  Ciphers aes128-ctr\n' | prepends
names_the_cipher() { expect_exit 1 dtool command --runs_on h1 --command true; expect_error 'aes128-ctr|cipher'; }
eventually 20 names_the_cipher  # the server may have gone before its list was read
expect_exit 1 dtool command --runs_on h1 --ssh_program ssh --command true
expect_error 'Unable to negotiate .*no matching cipher'
printf 'Host h1\n  Ciphers +aes256-cbc\n' | prepends
expect_exit 0 dtool command --runs_on h1 --command true
expect_exit 1 dtool command --runs_on h1 --ssh_program libssh --command true
expect_error 'ciphers \+aes256-cbc, which only the ssh program does'
fault restart-sshd h1
printf 'Host h1\n  UserKnownHostsFile /dev/null\n' | prepends
expect_exit 1 dtool command --runs_on h1 --command true
expect_error "UserKnownHostsFile=~/.ssh/known_hosts'; then: dtool trust --runs_on h1"
expect_exit 0 dtool trust --yes --runs_on h1 --ssh_cmd 'ssh -o UserKnownHostsFile=~/.ssh/known_hosts'
expect_exit 0 dtool command --runs_on h1 --ssh_cmd 'ssh -o UserKnownHostsFile=~/.ssh/known_hosts' --command true
cp "$work/lab_config" "$config"

# ---- start-up files
profile=$DTOOL_LAB_FOLDER/host2/root/.bashrc
expect_exit 0 dtool command --runs_on h2 --command true
fails_with() {
  printf '%s\n' "$1" >"$profile"
  expect_exit 2 timeout 60 "$DTOOL" run --runs_on h2 -- true
  expect_error "$2"
  expect_no_error 'x0a$'
}
fails_with 'exec >log' 'its output does not come here .*|hint: .*bashrc'
fails_with 'exit' 'bashrc'
fails_with 'ulimit -s 64' 'a stack \(ulimit -s\) of 64 kB at most: .*bashrc'
fails_with 'ulimit -f 0' 'files \(ulimit -f\) of 0 kB at most: .*bashrc'
fails_with 'echo a greeting; exit 3' '\(exit code 3\): a greeting'
fails_with 'cat >/dev/null' 'the request did not arrive: .*bashrc'
# A slow start-up file is waited for once.
rm -f "$DTOOL_LAB_FOLDER/host2/root/shells"
echo 'echo x >>~/shells' >"$profile"
takes_shells() {
  local shells
  shells=$(wc -l <"$DTOOL_LAB_FOLDER/host2/root/shells")
  [[ $shells == "$1" ]] || fail "$2 took $shells log-in shells, not $1"
  rm "$DTOOL_LAB_FOLDER/host2/root/shells"
}
for program in libssh ssh; do
  expect_exit 0 dtool run --runs_on h2 --ssh_program $program -- bash -c 'sleep 300'
  takes_shells 1 run
  expect_exit 0 dtool kill --yes --delete --ssh_program $program bash
  takes_shells 1 'kill --delete'
done
rm "$profile"
sed 's,^root:.*,root:x:0:0::/root:/bin/false,' /etc/passwd >"$work/passwd"
sudo_on h2 mount --bind "$work/passwd" /etc/passwd
expect_exit 2 dtool run --runs_on h2 -- true
expect_error 'runs no command \(exit code 1\)'
expect_error 'hint: .*/bin/false'
sudo_on h2 umount /etc/passwd
fault restart-sshd h2 -o 'ForceCommand=echo only this'
expect_exit 2 dtool run --runs_on h2 -- true
expect_error 'only this'
expect_error 'hint: .*ForceCommand'
fault restart-sshd h2 -o AllowTcpForwarding=no
printf 'Host behind\n  HostName %s\n  ProxyJump h2\n  HostKeyAlias h1\n' "$h1" | prepends
expect_exit 1 dtool command --runs_on behind --command true
expect_error 'jump host h2 forbids connections to '
fault restart-sshd h2
cp "$work/lab_config" "$config"

# ---- a screen that does not start counts as missing
sudo_on h2 mount -t tmpfs -o ro,mode=755 tmpfs /run/screen
printf 'echo "set up"\n' >set_up.sh
expect_exit 0 dtool config --runs_on h2 --config_script set_up.sh --follow
expect_exit 0 dtool run --json --runs_on h2 -- bash -c 'echo begun; sleep 300'
run_id=$(json 'd["run_id"]')
has_begun() { dtool logs "$run_id" | grep -q 'begun'; }
eventually 20 has_begun
expect_exit 0 dtool logs "$run_id"
expect_output 'dtool: screen did not start: '
expect_exit 0 dtool kill --yes --delete "$run_id"
expect_error 'none is left'
sudo_on h2 umount /run/screen

# ---- folders in which nothing may be executed
printf '#!/bin/sh\necho hi\n' >run.sh
chmod +x run.sh
on h2 mkdir -p there
disk_on h2 noexec /root/there
expect_exit 1 dtool run --follow --in_place --code_path /root/there --runs_on h2 -- ./run.sh
expect_error './run.sh may not be executed: is its file system mounted noexec'
sudo_on h2 umount /root/there
disk_on h2 noexec /root/.dtool
expect_exit 1 dtool config --follow --runs_on h2 --config_script run.sh
expect_error 'no script can be run in ~/.dtool: is it mounted noexec'
eventually 10 sudo_on h2 umount /root/.dtool  # something of the run may be ending

# ---- a /proc that tells only of processes, as under gVisor: no boot id, and no claim that the host was rebooted
sudo_on h1 mount -t proc -o subset=pid proc /proc
on h1 test ! -e /proc/sys/kernel/random/boot_id
expect_exit 0 dtool run --json --runs_on h1 -- bash -c 'echo begun; sleep 300'
run_id=$(json 'd["run_id"]')
eventually 20 has_begun
expect_exit 0 dtool status "$run_id"
expect_output "^$run_id: running on 1 of 1 machine"
expect_exit 0 dtool kill --yes --delete "$run_id"
expect_error 'none is left'
expect_exit 0 dtool run --follow --runs_on h1 -- bash -c 'sleep 3; echo "ended well"'
expect_output 'ended well'
sudo_on h1 umount /proc

# ---- how hosts are named
expect_exit 1 dtool command --runs_on h1:4 --command true
expect_error 'hint: .* a number of processes goes into --nproc_per_node 4'
printf '\xef\xbb\xbfh2\nh1\n' >hosts
expect_exit 0 dtool run --follow --hostfile hosts -- true
expect_error 'started on h\[1-2\], machine 0 on h2'
expect_exit 0 bash -c '"$DTOOL" command --hostfile - --command true <hosts'
expect_exit 0 dtool run --follow --runs_on "h1,$h1" -- true
expect_error "h1 and $h1 are one machine, which gets the processes of both"

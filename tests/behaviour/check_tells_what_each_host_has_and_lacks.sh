#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool check` folds what hosts agree in, marks the odd one out, hints how each lack is mended, and returns 1 where a host
# cannot take part in a run, 0 with warnings alone. The way to the listener is tried, and nothing of the trial is left.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 4
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
root() { echo "$DTOOL_LAB_FOLDER/host$1/root"; }

# A trainer of our own on each host, and none beside dtool.
mkdir "$work/bin"
cp "$DTOOL" "$work/bin/dtool"
DTOOL=$work/bin/dtool
version=$(dtool --version | cut -d' ' -f2)
trainer() { # HOST WORDS
  mkdir -p "$(root "$1")/.dtool/bin"
  printf '#!/bin/sh\necho "dtool-trainer %s"\n' "$2" >"$(root "$1")/.dtool/bin/dtool-trainer"
  chmod +x "$(root "$1")/.dtool/bin/dtool-trainer"
}
for host in 1 2 3 4; do
  trainer "$host" "$version (LibTorch 1.13.0)"
  theirs "$host"
done

check() { timeout 60 "$DTOOL" check --runs_on "$DTOOL_LAB_HOSTS" "$@"; }
fact() { json "[str(f['value']) + ' ' + f['verdict'] for f in d['hosts'][$1]['facts'] if f['name'] == '$2'][0]"; }
nothing_listens() { expect_equal '' "$(on 1 pgrep -f dtool-host || true)"; }

# Each host's own name leads to itself alone, as Debian's installer writes it.
expect_exit 0 check --json
expect_equal "the host's own name is 127.0.1.1 in its /etc/hosts warning" "$(fact 2 'own name')"
eventually 10 nothing_listens
for host in 1 2 3 4; do on $host sh -c 'grep -v 127.0.1.1 /etc/hosts >hosts; cat hosts >/etc/hosts; rm -r hosts .dtool/host* 2>/dev/null || true'; done

# All alike: one line each, one connection a host, nothing left
expect_exit 0 check --json
expect_equal 4 "$(json 'len(d["hosts"])')"
expect_equal "${address[0]}" "$(json 'd["distributed_ip_and_port"].split(":")[0]')"
port=$(json 'd["distributed_ip_and_port"].split(":")[1]')
expect_equal "listens on ${address[0]} port $port by eth0 well" "$(fact 0 listener)"
for i in 1 2 3; do expect_equal "reaches ${address[0]} port $port by eth0 well" "$(fact $i listener)"; done
expect_equal "$version (LibTorch 1.13.0) well" "$(fact 3 trainer)"
expect_equal "$(on 2 nproc).0 well" "$(fact 1 cores)"
expect_equal True "$(json 'all(abs(f["value"]) < f["uncertainty"] + 0.5 for h in d["hosts"] for f in h["facts"] if f["name"] == "clock")')"
for host in 1 4; do
  expect_equal 1 "$(grep -c '^Accepted' "$DTOOL_LAB_FOLDER/host$host/sshd.log")"
  expect_equal '' "$(on "$host" find .dtool -name runs)"
done
eventually 10 nothing_listens
expect_exit 0 check
expect_output "^log-in +as root, /bin/bash$"
expect_output "^trainer +$version \(LibTorch 1\.13\.0\)$"
expect_no_output '^ *[a-z-]* +[!x] .*(reach|trainer|rsync)'

# A limit of processor time, a disk that can hold no further file
fault quota 1 h2
on 3 mkdir -p .dtool/runs
disk_on 3 nr_inodes=9 /root/.dtool/runs
expect_exit 1 check --json
expect_equal '1.0 well' "$(fact 1 cores)"
expect_equal 'the disk of ~/.dtool has inodes for only 8 more files failure' "$(fact 2 home)"
sudo_on 3 umount /root/.dtool/runs
fault quota 100 h2

# The odd ones out: no rsync; another rsync; packets to the listener that vanish
fault hide h2 rsync
mkdir "$(root 3)/bin"
printf '#!/bin/sh\necho "rsync  version 2.6.9  protocol version 29"\n' >"$(root 3)/bin/rsync"
chmod +x "$(root 3)"/bin/*
# shellcheck disable=SC2016
echo 'PATH=/root/bin:$PATH' >"$(root 3)/.bashrc"
sudo_on 4 ip neigh replace "${address[0]}" lladdr 02:00:00:00:00:01 dev eth0 nud permanent
expect_exit 1 check
expect_output "^ +! no usable rsync: dtool fetch and dtool copy --from need it +${address[1]}$"
expect_output "hint: on Debian: dtool command --command 'sudo apt-get install -y rsync' --runs_on ${address[1]}$"
expect_output "^ +! 2\.6\.9 +${address[2]}$"
expect_output "^ +hint: most of the others have "
expect_output "^ +x does not reach ${address[0]} port [0-9]+ by eth0: no answer +${address[3]}$"
expect_output '^ +hint: a firewall on the way'
expect_error "^dtool: 1 of 4 hosts is not fit for a run: ${address[3]}$"
expect_exit 1 check --json
expect_equal 'well warning warning failure' "$(json '" ".join(h["verdict"] for h in d["hosts"])')"
eventually 10 nothing_listens
sudo_on 4 ip neigh del "${address[0]}" dev eth0
sudo_on 4 ip route add unreachable "${address[0]}/32"
expect_exit 1 check
expect_output "x does not reach .*: no route to host +${address[3]}$"
sudo_on 4 ip route del unreachable "${address[0]}/32"

# Warnings alone: a system that ends what users leave running
fault unhide h2 rsync
rm "$(root 3)/bin/rsync"
sudo_on 2 mount -t tmpfs none /etc/systemd
on 2 sh -c 'printf "[Login]\nKillUserProcesses=yes\n" >/etc/systemd/logind.conf'
expect_exit 0 check
expect_output "! the system ends what you leave running \(KillUserProcesses\) +${address[1]}$"
expect_output '^ +hint: .*loginctl enable-linger$'
expect_error '^fit for a run, with 1 warning$'
sudo_on 2 umount /etc/systemd
rm "$(root 3)/.bashrc"

# Trainers, the activate file, a talkative shell, a port that is taken
trainer 3 '0.0.9 (LibTorch 1.13.0)'
trainer 4 "$version (LibTorch 2.1.0)"
rm "$(root 2)/.dtool/bin/dtool-trainer"
touch "$(root 1)/activate"
echo 'echo welcome' >"$(root 4)/.bashrc"
on 1 perl -e 'use Socket; socket(S, AF_INET, SOCK_STREAM, 0); bind(S, pack_sockaddr_in(29777, INADDR_ANY)); listen(S, 1); sleep 600' >/dev/null 2>&1 &
eventually 10 on 1 bash -c ': </dev/tcp/127.0.0.1/29777'
# shellcheck disable=SC2088
expect_exit 1 check --env_activate_path '~/activate' --distributed_ip_and_port "${address[0]}:29777"
expect_output "x dtool-trainer is not there +${address[1]}$"
expect_output "x .*/dtool-trainer is not of version $version: it says dtool-trainer 0\.0\.9 .* +${address[2]}$"
expect_output "! $version \(LibTorch 2\.1\.0\) +${address[3]}$"
expect_output 'x --env_activate_path: there is no file /root/activate +.*\[2-4\]$'
expect_output "! the login shell prints something even without a terminal +${address[3]}$"
expect_output "x something listens on port 29777 already +${address[0]}$"
expect_no_output 'reaches|does not reach'
rm "$(root 4)/.bashrc"
expect_exit 0 check --no_trainer
expect_no_output '^trainer'

# Hosts that cannot be logged in to; the others are told all the same
fault forget h3
fault cut h2
expect_exit 1 check --no_trainer --connect_timeout 1
expect_output "^ +x .* +${address[1]}$"
expect_output "^ +x .*key.* +${address[2]}$"
expect_output "hint: .*dtool trust --runs_on ${address[2]}$"
expect_output "reaches ${address[0]} port [0-9]+ by eth0 +${address[3]}$"

# Mistakes
expect_exit 2 dtool check
expect_error '^dtool: no hosts were named'
expect_exit 2 check --distributed_ip_and_port 1.2.3.4:80
expect_error '1\.2\.3\.4 is not one of the hosts'
expect_exit 2 check --distributed_ip_and_port "${address[0]}:x"
expect_exit 2 check --no_such_flag

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool kill` that cannot look at a host's processes says so, and keeps the killfile: where no more files can be opened, or where /proc
# does not show processes. More processes than an argument list holds keep it from nothing, and neither does a limit at which it can start
# no program.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 1
connects_anew
touch code
profile=$DTOOL_LAB_FOLDER/host1/root/.bashrc
expect_exit 0 dtool run --json --runs_on h1 -- bash -c "trap '' HUP; exec sleep 518204$$"
run_id=$(json 'd["run_id"]')
eventually 10 expect_process_with "$run_id"

# With a /proc that shows no process, none can be found in it.
sudo_on 1 mount -t tmpfs tmpfs /proc
expect_exit 1 dtool kill --yes --delete --grace 1 "$run_id"
expect_error 'processes cannot be looked at'
expect_no_error 'none is left'
expect_file "$HOME/.dtool/killfiles/$run_id.killfile"
sudo_on 1 umount /proc
expect_process_with "$run_id"

# 128 kB is the least that an argument list may have, and all but some kB of it is taken.
on 1 bash -c 'for ((i = 0; i < 250; i++)); do sleep 300 & done; wait' &
at_end "kill $! 2> /dev/null"
many() { (($(on 1 bash -c "echo /proc/[0-9]*/environ | wc -w") > 250)); }
eventually 30 many
# shellcheck disable=SC2016,SC2028
echo 'ulimit -s 256; export ROOM=$(head -c 125000 /dev/zero | tr "\0" x)' >"$profile"
expect_exit 0 dtool status "$run_id"
expect_output '^0 .* running'
expect_exit 0 dtool kill --yes --delete --grace 1 "$run_id"
expect_error 'none is left$'
expect_no_process_with "$run_id"
expect_no_file "$HOME/.dtool/killfiles/$run_id.killfile"

rm "$profile"

# With four open files /proc can be read, and screen cannot be asked.
expect_exit 0 dtool run --json --runs_on h1 -- sleep 518204$$
run_id=$(json 'd["run_id"]')
echo 'ulimit -n 4' >"$profile"
expect_exit 1 dtool kill --yes --delete --grace 1 "$run_id"
expect_error 'processes cannot be looked at'
expect_no_error 'none is left'
expect_file "$HOME/.dtool/killfiles/$run_id.killfile"
rm "$profile"

# At the host's limit of processes, where dtool-host runs and can start nothing, the run is ended first.
limited=/sys/fs/cgroup/pids/$(basename "$work")
if mkdir "$limited" 2>/dev/null; then
  at_end 'rmdir "$limited"'
  expect_exit 0 dtool run --json --runs_on h1 -- bash -c "trap '' TERM; sleep 518204$$ & wait"
  run_id=$(json 'd["run_id"]')
  eventually 10 expect_process_with "$run_id"
  echo 1 >"$limited/pids.max"
  echo "echo \$\$ >$limited/cgroup.procs" >"$profile"
  expect_exit 1 dtool kill --yes --delete --grace 1 "$run_id"
  expect_error 'cannot be looked at: no process can be made'
  expect_no_error 'none is left'
  eventually 10 expect_no_process_with "$run_id"
  # Where not even dtool-host can start, the limit is named.
  printf 'echo $$ >%s/cgroup.procs\ntrue | true\n' "$limited" >"$profile"
  expect_exit 1 dtool kill --yes --delete --grace 1 "$run_id"
  expect_error 'limit of processes'
  rm "$profile"
  expect_exit 0 dtool kill --yes --delete "$run_id"
  expect_error 'none is left$'
fi

# A user at the limit of ulimit -u, for whom sshd itself can start no shell.
{ cat /etc/passwd; echo 'limited:x:41234:41234::/root/limited:/bin/bash'; } >"$work/passwd"
sudo_on 1 mount --bind "$work/passwd" /etc/passwd
chmod 711 "$DTOOL_LAB_FOLDER/host1/root"
# shellcheck disable=SC2016
on 1 bash -c 'mkdir -p limited/.ssh; cp -r .ssh/. limited/.ssh; chown -R 41234:41234 limited; prlimit --pid "$(pgrep -o -x sshd)" --nproc=14:14'
# shellcheck disable=SC2016
expect_exit 0 dtool run --json --runs_on limited@h1 -- bash -c 'for ((i = 0; i < 20; i++)); do sleep 300 & done; wait'
run_id=$(json 'd["run_id"]')
is_full() { (($(on 1 pgrep -u 41234 | wc -l) > 12)); }
eventually 10 is_full
expect_exit 1 dtool kill --yes "$run_id"
expect_error 'the server starts no command'
expect_error 'hint: is the host at a limit of processes \(ulimit -u'
on 1 pkill -KILL -u 41234
eventually 10 dtool kill --yes --delete "$run_id"

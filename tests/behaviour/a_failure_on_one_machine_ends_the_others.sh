#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One machine's program fails, is killed, or loses its session: the others' are ended, daemons too, with no launcher
# there, and status and logs name the machine, the rank, the reason and the last lines. Hosts need neither perl nor python3 for it.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3

cat >program.sh <<'END'
# Does what the file `do` in its home says, once it is there, beside a daemon.
(setsid bash -c '[ -z "$DEAF" ] || trap "" TERM HUP; sleep 600 & wait; sleep 600' > /dev/null 2>&1 &)
echo "rank $RANK works"
until [ -e ~/do ]; do sleep 0.1; done
. ~/do
END

# start_run TAG: in the background of the hosts; sets run_id.
start_run() {
  for host in 1 2 3; do on "$host" rm -f /root/do; done
  expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --extra_tag "$1" "${@:2}" -- bash program.sh
  run_id=$(json 'd["run_id"]')
  for host in 2 3; do
    on "$host" timeout 20 bash -c 'until [ "$(cat ~/.dtool/runs/'"$run_id"'/machine*/supervision 2> /dev/null)" = ok ]; do sleep 0.1; done'
  done
}

state_of() { dtool status "$run_id" --json 2>/dev/null | /usr/bin/python3 -c 'import json, sys; print(*[m["state"] for m in json.load(sys.stdin)["machines"]])'; }
states_are() { [[ $(state_of) == "$1" ]]; }

# expect_end STATES CAUSE: within 10 s of now.
expect_end() {
  eventually 30 states_are "$1"
  eventually 20 expect_no_process_with "$run_id"
  expect_exit 1 dtool status "$run_id"
  expect_output "^cause: $2"
  expect_exit 1 dtool logs -f "$run_id"
  expect_error "the cause: $2"
}

# How the program ends by itself; its last lines are shown.
start_run exit --export DEAF=yes
# Who does not know the token is not heard, nor who says nothing.
where=$(json 'd["coordinator"].replace(":", "/")')
on 3 timeout 5 bash -c "exec 3<> /dev/tcp/$where; echo wrong 1 0 failed 1 lies >&3; cat <&3" >"$work/heard" || true
expect_equal '' "$(cat "$work/heard")"
expect_exit 0 dtool status
expect_output '^supervised by machine 0 \(198[0-9.]*\)$'
on 3 bash -c "for i in 1 2 3; do exec 3<> /dev/tcp/$where 4<> /dev/tcp/$where; head -c 5000 /dev/urandom >&4; done" || true
on 2 sh -c 'printf "echo Traceback\necho RuntimeError: a running peer has gone away\nexit 3\n" > ~/do.new && mv ~/do.new ~/do'
expect_end 'stopped exited stopped' 'rank 1 on machine 1 \(198[0-9.]*\) ended with exit code 3: RuntimeError: a running peer has gone away$'
expect_exit 1 dtool status "$run_id"
expect_output '^  \| Traceback$'
expect_output '^0 .*stopped .*rank 0 works$'
expect_exit 1 dtool logs "$run_id" -f
expect_error 'its processes were ended because the run failed'
expect_equal "stop" "$(dtool status "$run_id" --json 2>/dev/null | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["on_failure"])' || true)"

# Not the rank was killed, but the process of dtool's own that started it.
start_run own_process
on 2 sh -c 'echo "kill -KILL \$PPID; sleep 100" > ~/do.new && mv ~/do.new ~/do'
expect_end 'stopped exited stopped' "dtool's own process on machine 1 \\(198[0-9.]*\\) was killed by signal 9 \\(KILL\\)$"

# The kernel ends what takes more memory than there is.
for group in /sys/fs/cgroup/memory /sys/fs/cgroup; do [[ ! -e $group/cgroup.procs ]] || break; done
group=$group/$test_name-$$
[[ ! -e /sys/fs/cgroup/cgroup.subtree_control ]] || echo +memory >/sys/fs/cgroup/cgroup.subtree_control || true
mkdir "$group"
at_end 'rmdir "$group"'
for limit in memory.limit_in_bytes memory.max; do [[ ! -e $group/$limit ]] || echo 50000000 >"$group/$limit"; done
start_run hungry
on 3 sh -c "echo 'echo \$BASHPID > ~/pid; until [ -e ~/moved ]; do sleep 0.1; done; exec tail /dev/zero' > ~/do.new && mv ~/do.new ~/do"
eventually 20 on 3 test -s /root/pid
sudo_on 3 sh -c "cat /root/pid > $group/cgroup.procs; touch /root/moved"
expect_end 'stopped stopped exited' 'rank 2 on machine 2 \(198[0-9.]*\) was killed by signal 9 \(KILL\): the kernel ran out of memory; its last line: rank 2 works$'

# Machine 0, whose session decides, is no other.
start_run killed
worker=$(on 1 pgrep -f '^bash program.sh$' | head -n 1)
# Ctrl-C in an attached session reaches it: SIGINT, the second bit, is not ignored.
on 1 grep -q '^SigIgn:.*[014589cd]$' "/proc/$worker/status" || fail "SIGINT is ignored: $(on 1 grep SigIgn "/proc/$worker/status")"
on 1 kill -KILL "$worker"
expect_end 'exited stopped stopped' 'rank 0 on machine 0 \(198[0-9.]*\) was killed by signal 9 \(KILL\); its last line: rank 0 works$'

# Without its screen a run goes on, but for attach, and so without the guards of its sessions; and ends as ever.
start_run screen
on 3 pkill -KILL -f "^SCREEN.*$run_id"
for host in 1 3; do on "$host" pkill -KILL -f '^dtool-host guard$'; done
sleep 2
states_are 'running running running' || fail "without its screen: $(state_of)"
on 3 sh -c 'echo exit 5 > ~/do.new && mv ~/do.new ~/do'
expect_end 'stopped stopped exited' 'rank 2 on machine 2 \(198[0-9.]*\) ended with exit code 5: rank 2 works$'

# The session itself: nothing is left that could say how it ended, but its guard, which ends what is left.
start_run session
on 2 pkill -KILL -f '^[^ ]*/dtool-host session .*machine1.log$'
eventually 30 states_are 'stopped lost stopped'
expect_exit 1 dtool status "$run_id"
expect_output '^cause: the session on machine 1 is gone: it was killed$'
eventually 30 expect_no_process_with "$run_id"

# The session that decides: the others notice, and stop.
start_run decider
on 1 pkill -KILL -f '^[^ ]*/dtool-host session .*machine0.log$'
eventually 20 states_are 'lost stopped stopped'
expect_exit 1 dtool status "$run_id"
expect_output '^cause: nothing listens at 198[0-9.:]*: the session on machine 0 is gone$'
eventually 30 expect_no_process_with "$run_id"

# Left alone where that is wanted.
start_run_left() {
  for host in 1 2 3; do on "$host" rm -f /root/do; done
  expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --on_failure leave -- bash program.sh
  run_id=$(json 'd["run_id"]')
}
start_run_left
on 2 sh -c 'echo exit 3 > ~/do.new && mv ~/do.new ~/do'
eventually 30 states_are 'running exited running'
sleep 3
states_are 'running exited running' || fail "with --on_failure leave: $(state_of)"
expect_exit 0 dtool kill "$run_id" --yes --delete --grace 0.5

fault hide h1 perl
fault hide h1 python3
start_run neither
on 3 sh -c 'echo exit 4 > ~/do.new && mv ~/do.new ~/do'
expect_end 'stopped stopped exited' 'rank 2 on machine 2 .* ended with exit code 4: rank 2 works$'

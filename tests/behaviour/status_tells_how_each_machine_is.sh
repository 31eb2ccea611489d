#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool status` says of each machine whether it runs, has exited, was killed, was lost, was rebooted, never started or cannot be
# reached; what failed stands first, and the exit code is 1 where anything did.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program python3
lab 4

expect_exit 2 dtool status
expect_error 'no run is recorded'

cat >work.sh <<'END'
printf 'a first line\r\033[32mworking on it\033[0m\r'
head -c 20000000 /dev/zero | tr '\0' x
printf '\nhalf\rworking on it\n'
setsid sleep 300 &
sleep 300
END
expect_exit 0 dtool run --json --on_failure leave --runs_on "$DTOOL_LAB_HOSTS" -- bash work.sh
run_id=$(json 'd["run_id"]')
state_on() { echo "$DTOOL_LAB_FOLDER/host$1/root/.dtool/runs/$run_id/machine$(($1 - 1))"; }
has_last_lines() { [[ $(dtool status --json 2>/dev/null | grep -c '"last_line": "working on it"') == 4 ]]; }
eventually 60 has_last_lines

# All four run, though their logs are large and full of control characters.
expect_exit 0 dtool status
expect_error "the newest run is $run_id"
expect_output "$run_id: running on 4 of 4 machines"
expect_equal 4 "$(grep -c 'running .*working on it$' "$out")"
expect_no_output 'cause:'
expect_exit 0 dtool status --json "${run_id:0:12}"
expect_equal 'running 0 0 1 2 3' "$(json '" ".join([d["state"], str(d["exit_code"])] + [str(m["id"]) for m in d["machines"]])')"
expect_equal True "$(json 'all(m["processes"] >= 3 and m["memory_bytes"] > 0 and m["up_s"] >= 0 for m in d["machines"])')"

# One loses its session to SIGKILL, one is rebooted, one is cut off.
on h2 bash -c "kill -KILL \$(cut -d' ' -f1 ~/.dtool/runs/$run_id/machine1/process)"
on h3 bash -c "kill -KILL \$(cut -d' ' -f1 ~/.dtool/runs/$run_id/machine2/process)"
sed -i 's/[^ ]*$/00000000-0000-0000-0000-000000000000/' "$(state_on 3)/process"
fault cut h4
expect_exit 1 dtool status --connect_timeout 2
expect_output 'running on 1 of 4 machines, 1 lost, 1 lost, rebooted, 1 unreachable'
expect_equal 2 "$(grep -n '^cause: machine 2 (.*) was rebooted while it ran$' "$out" | cut -d: -f1)"
expect_output '^1 .* lost  .* 1 of its processes is left: '
expect_output '^3 .* unreachable  .*no answer'
expect_exit 1 dtool status --connect_timeout 2 --json
expect_equal 'running lost lost unreachable' "$(json '" ".join(m["state"] for m in d["machines"])')"
expect_equal '[False, True]' "$(json '[m["rebooted"] for m in d["machines"] if "rebooted" in m]')"
fault mend h4

# A boot id that cannot be read, as in many containers, proves no reboot: neither for this run nor for one that begins so.
hide_boot() { sudo_on h1 mount -t tmpfs tmpfs /proc/sys/kernel/random; }
hide_boot
expect_exit 1 dtool status
expect_output '^0 .* running'
expect_exit 0 dtool run --follow --runs_on h1 --extra_tag hidden -- bash -c 'sleep 2; echo done'
expect_output 'done$'
expect_exit 0 dtool run --runs_on h1 --extra_tag hidden_too -- sleep 300
expect_exit 0 dtool status sleep_hidden_too
expect_output '^0 .* running'
sudo_on h1 umount /proc/sys/kernel/random
expect_exit 0 dtool status sleep_hidden_too
expect_output '^0 .* running'
hide_boot
expect_exit 0 dtool kill --yes --delete sleep_hidden_too
expect_error 'none is left'
expect_exit 0 dtool kill --yes --delete bash_hidden
sudo_on h1 umount /proc/sys/kernel/random

# Whoever deletes the run's folder has not ended its processes.
on 1 mv ".dtool/runs/$run_id" elsewhere
expect_exit 1 dtool status
expect_output "^0 .* unproven \(no folder\) .* the run's folder is gone; [0-9]+ of its processes are left$"
on 1 mv elsewhere ".dtool/runs/$run_id"

# Ended by kill, and told so; then its folders are gone.
expect_exit 0 dtool kill "$run_id"
expect_exit 1 dtool status
expect_output 'killed'
rm -rf "${DTOOL_LAB_FOLDER:?}/host1/root/.dtool/runs/${run_id:?}"
expect_exit 1 dtool status
expect_output '^0 .*unproven \(no folder\)'
mkdir "$DTOOL_LAB_FOLDER/host1/root/.dtool/runs/$run_id"
expect_exit 1 dtool status
expect_output '^0 .*not started'

# Ended by themselves: one badly, the others well.
# shellcheck disable=SC2016
expect_exit 1 dtool run --follow --on_failure leave --runs_on "$DTOOL_LAB_HOSTS" -- bash -c 'echo the reason; exit $((RANK == 2 ? 3 : 0))'
expect_exit 1 dtool status
expect_output '^cause: machine 2 \(.*\) ended with exit code 3: the reason$'
expect_output '^0 .* ended'
expect_exit 0 dtool run --follow --runs_on "$DTOOL_LAB_HOSTS" -- true
expect_exit 0 dtool status
expect_output 'ended on 4 machines'
expect_exit 2 dtool status nobody

# Several runs: each has its part, and one that failed decides the exit code.
expect_exit 1 dtool status last last-1
expect_output 'ended on 4 machines'
expect_output '^cause: machine 2 '
expect_exit 1 dtool status last last-1 --json
expect_equal '2 [0, 1]' "$(json 'str(len(d["runs"])) + " " + str([r["exit_code"] for r in d["runs"]])')"
expect_exit 0 dtool show last-1 last
expect_equal 2 "$(grep -c '^run  ' "$out")"
expect_exit 0 dtool show last-1 last --json
expect_equal 2 "$(json 'len(d["runs"])')"
expect_exit 2 dtool status last nobody
expect_no_output .
expect_exit 2 dtool status last last-1 --watch
expect_error 'watch shows one run'

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A host is rebooted while a run goes on and is looked at: `status` says so and names it as the cause, `logs -f` ends, the others run on,
# and `kill` ends them without touching a process that has an old one's pid by now, or a run that was started since.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
tag=129837$$  # tells its processes from those of other labs on this machine
touch code
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"

# shellcheck disable=SC2016
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --extra_tag first -- \
  bash -c '(setsid sleep "$0" &); for ((i = 0; ; i++)); do echo "line $i"; sleep 0.1; done' "$tag"
run_id=$(json 'd["run_id"]')
timeout 120 "$DTOOL" logs -f "$run_id" >"$work/followed" 2>"$work/followed.err" </dev/null &
following=$!
has_lines() { [[ $(grep -c "^machine$1: " "$work/followed") -gt 5 ]]; }
for id in 0 1 2; do eventually 20 has_lines $id; done
log=$(on h2 readlink "/root/.dtool/runs/$run_id/machine1/log")
read -r pid _ boot < <(on h2 cat "/root/.dtool/runs/$run_id/machine1/process")

fault reboot h2
[[ $(on h2 cat /proc/sys/kernel/random/boot_id) != "$boot" ]] || fail 'the host was not rebooted'
# What has the old number now, and a run since.
# shellcheck disable=SC2016
sudo_on h2 bash -c 'while [ ! -e "/proc/$1" ]; do echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid; setsid sleep 746352 </dev/null >/dev/null 2>&1 & sleep 0.1; done' bash "$pid"
expect_equal "sleep 746352" "$(on h2 ps -o args= -p "$pid")"
expect_exit 0 dtool run --json --runs_on h2 --extra_tag second -- sleep 837465
second=$(json 'd["run_id"]')

expect_exit 1 dtool status "$run_id"
expect_output "^$run_id: running on 2 of 3 machines, 1 lost, rebooted"
expect_output "^cause: machine 1 \(${address[1]}\) was rebooted while it ran$"
expect_output "^1 .* lost, rebooted .* line [0-9]+$"
expect_exit 0 dtool status "$second"

# Of the connection nobody told that it had ended: it is found out within half a minute.
eventually 60 grep -q 'machine1: connected again' "$work/followed.err"
# shellcheck disable=SC2016
answered() { [[ -z $(on h2 bash -c 'pgrep -P "$(pgrep -d , -f "^sshd: (root|ann)@notty")"') ]]; }
eventually 20 answered
expect_exit 0 dtool kill --yes --delete "$run_id"
expect_error "$run_id: [0-9]+ processes ended on .*; none is left"
expect_ended 1 "$following"
grep -q '^machine1: .*; trying again' "$work/followed.err" || fail "logs -f did not tell of the loss: $(cat "$work/followed.err")"
grep -q "^  ${address[1]}: it ended without an exit code" "$work/followed.err" || fail "logs -f did not tell the end: $(cat "$work/followed.err")"
grep -q ": it was killed$" "$work/followed.err" || fail "logs -f did not tell of the kill: $(cat "$work/followed.err")"
# What had been written is shown, once and in order.
expect_equal "$(on h2 cat "$log")" "$(sed -n 's/^machine1: //p' "$work/followed")"

expect_no_process_with "$run_id"
expect_equal '' "$(pgrep -fx "sleep $tag" || true)"
expect_equal "sleep 746352" "$(on h2 ps -o args= -p "$pid")"
expect_process_with "$second"
expect_exit 0 dtool kill --yes --delete --all
expect_equal "sleep 746352" "$(on h2 ps -o args= -p "$pid")"
expect_equal '' "$(ls "$HOME/.dtool/killfiles")"

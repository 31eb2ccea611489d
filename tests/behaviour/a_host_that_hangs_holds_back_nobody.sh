#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# All processes of a host stand still while its kernel answers, as on one that swaps itself to death: `status` and `kill` answer for the
# others and name it, exit code 1; `logs -f` shows the others' lines; when it goes on, so does everything, and no line is lost.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
touch code
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" -- bash -c 'for ((i = 0; ; i++)); do echo "line $i"; sleep 0.1; [ ! -e /root/end ] || exit 0; done'
run_id=$(json 'd["run_id"]')
timeout 100 "$DTOOL" logs -f >"$work/logs.out" 2>"$work/logs.err" </dev/null &
following=$!
has_begun() { for id in 0 1 2; do grep -q "^machine$id: line 10$" "$work/logs.out" || return 1; done; }
eventually 30 has_begun

fault freeze h2
lines=$(grep -c '^machine2' "$work/logs.out")
goes_on() { (($(grep -c '^machine2' "$work/logs.out") > lines + 30)); }
eventually 30 goes_on
expect_exit 1 dtool status --connect_timeout 2
expect_output 'running on 2 of 3 machines, 1 unreachable'
expect_output "^cause: machine 1 \(${address[1]}\) cannot be asked: .*in time$"
for host in 1 3; do on $host touch /root/end; done
ended() { for host in 1 3; do on $host test -e ".dtool/runs/$run_id/machine$((host - 1))/exit_code" || return 1; done; }
eventually 20 ended
expect_exit 1 dtool kill --connect_timeout 2 --yes --delete
expect_error "^  ${address[1]}: .*in time$"
expect_error 'the killfile is kept'

fault thaw h2
on h2 touch /root/end
expect_ended 0 "$following"
for id in 0 1 2; do
  expect_equal "$(cat "$DTOOL_LAB_FOLDER/host$((id + 1))/root/here/experiment_output/$run_id/machine$id.log")" "$(sed -n "s/^machine$id: //p" "$work/logs.out")"
done
expect_exit 0 dtool kill --yes --delete "$run_id"
expect_no_process_with "$run_id"

# On a terminal those that are waited for are named soon: while hosts are looked at, and while the code is sent.
head -c 4000000 /dev/urandom >large
on_terminal() { timeout 60 script -qec "$(printf '%q ' "$@")" /dev/null >"$work/terminal" </dev/null & }
shows() { tr '\r' '\n' <"$work/terminal" | grep -q -- "$1"; }
fault slow h2 rate 6mbit
# Without passing on: in a chain the hosts beside a slow one wait for it.
on_terminal "$DTOOL" run --no_relay --runs_on "$DTOOL_LAB_HOSTS" -- true
running=$!
eventually 20 shows 'sending the code: 2 of 3 hosts, '
fault freeze h2
eventually 10 shows "sending the code: 2 of 3 hosts, .* %), waiting for ${address[1]}"
fault thaw h2
expect_ended 0 "$running"
fault freeze h2
on_terminal "$DTOOL" check --runs_on "$DTOOL_LAB_HOSTS" --connect_timeout 8
eventually 8 shows "looked at: 2 of 3 hosts, waiting for ${address[1]}"
fault thaw h2
wait

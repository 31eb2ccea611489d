#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hosts whose home folder is one and the same, as a cluster's file server gives it: the code that all are sent at once arrives whole, each
# machine has its own state and log there, and `status`, `logs` and `kill` tell them apart.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 4 --shared_home
tag=819203$$  # tells its processes from those of other labs on this machine

for round in 1 2; do
  for ((i = 0; i < 200; i++)); do echo "$round $RANDOM" >file$i; done
  wanted=$(cat file* | sha256sum)
  expect_exit 0 timeout 100 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" -- bash -c 'cat file* | sha256sum'
  for id in 0 1 2 3; do expect_output "^machine$id: $wanted$"; done
done
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --extra_tag long -- bash -c '(setsid sleep "$0" &); hostname; sleep "$0"' "$tag"
run_id=$(json 'd["run_id"]')
expect_exit 0 dtool status "$run_id"
expect_output 'running on 4 of 4 machines'
# shellcheck disable=SC2317
said() {
  expect_exit 0 dtool logs "$run_id"
  for id in 0 1 2 3; do expect_output "^machine$id: .*-$((id + 1))$"; done
}
eventually 20 said
expect_exit 0 dtool kill --yes --delete "$run_id"
expect_no_process_with "$run_id"
expect_equal '' "$(pgrep -fx "sleep $tag" || true)"
expect_exit 0 dtool kill --all --yes --delete

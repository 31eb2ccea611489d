#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Root's run and another user's processes: a process of somebody else's that calls itself the run's draws nothing of root's into `kill`, nor
# into `status`.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program setpriv
as_root
lab 1
connects_anew
touch code
tag=518205$$
as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
left() { pgrep -fx "sleep $tag\.$1" || true; }

expect_exit 0 dtool run --json --runs_on h1 -- bash -c "sleep $tag.1 & ${as_nobody[*]} sleep $tag.4 & exec sleep $tag.1"
run_id=$(json 'd["run_id"]')
# A log-in session of nobody's in which root has started something, as sudo does; its leader says that it is the run's.
on 1 setsid bash -c "setsid bash -c 'sleep $tag.2 & exec ${as_nobody[*]} env DTOOL_RUN_ID=$run_id sleep $tag.3' & wait" || true &
for kind in 1 2 3 4; do eventually 20 pgrep -fx "sleep $tag\.$kind"; done
nobodys=$(left 3)
dtool status --json "$run_id" >"$out"
expect_equal "$(processes_with "$run_id" | grep -vxc "$nobodys")" "$(json 'd["machines"][0]["processes"]')"
expect_exit 0 dtool kill --yes --delete --grace 1 "$run_id"
expect_equal '' "$(left 1)$(left 4)"  # what root's run has itself started as another user, root ends
[[ -n $(left 2) ]] || fail "kill has ended what is root's and not the run's"
expect_equal "$nobodys" "$(left 3)"
expect_error "1 process of other users with the run's id: [0-9]+ sleep $tag.3; whether the run had them started cannot be told"
kill "$nobodys"

# A daemon that the run itself has started as another user looks the same: it is named, and left.
expect_exit 0 dtool run --json --runs_on h1 -- bash -c "(setsid ${as_nobody[*]} bash -c 'sleep $tag.5 &'); exec sleep $tag.1"
run_id=$(json 'd["run_id"]')
for kind in 1 5; do eventually 20 pgrep -fx "sleep $tag\.$kind"; done
expect_exit 0 dtool kill --yes --delete --grace 1 "$run_id"
expect_error 'no process is left that is known to be the run'
expect_error "1 process of other users with the run's id: [0-9]+ sleep $tag.5; whether"
expect_no_error 'none is left'
pkill -fx "sleep $tag\.5"

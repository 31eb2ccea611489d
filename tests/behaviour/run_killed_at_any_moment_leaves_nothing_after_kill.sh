#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Nothing starts that is not recorded: the launcher is killed with SIGKILL at moments spread over the whole of
# `dtool run`, of a program that daemonises. Where there is a killfile, `dtool kill` then leaves no process; where there
# is none, nothing was started, and the empty folder on the hosts goes with a later run.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
moments=${MOMENTS:-25}

cat >program.sh <<'END'
(setsid bash -c 'trap "" TERM HUP; sleep 600 & sleep 600' &)
sleep 600
END
for ((i = 0; i < 200; i++)); do echo "$i" >"file$i"; done

# Ids that any process of this test's hosts bears, but for those that hold a port; other labs' hosts have other addresses.
bridge=$(head -n 1 "$DTOOL_LAB_FOLDER/hosts")
bridge=${bridge%.*}
ids() {
  local environ
  { grep -lsz "^SSH_CONNECTION=${bridge//./\\.}\." /proc/[0-9]*/environ || true; } |
    while read -r environ; do
      ! grep -qsz '^hold$' "${environ%environ}cmdline" || [[ ${1:-} == holders_too ]] || continue
      { cat "$environ" 2>/dev/null || true; } | tr '\0' '\n' | sed -n 's/^DTOOL_RUN_ID=//p'
    done |
    sort -u
}
recorded() { find "$HOME/.dtool/killfiles" -name '[!.]*.killfile' -printf '%f\n' 2>/dev/null | sed 's/\.killfile$//'; }
start() { dtool run --quiet --runs_on "$DTOOL_LAB_HOSTS" -- bash program.sh; }

# How long it takes, at the second time: the first sends the tree. A launcher that is killed takes its connections along, so
# later ones find none, either.
start
dtool disconnect >/dev/null 2>&1
began=${EPOCHREALTIME/./}
start
whole=$((${EPOCHREALTIME/./} - began))
[[ -n $(ids) ]] || fail 'the test does not test: no process bears an id'
expect_exit 0 dtool kill --all --yes --delete --grace 0.2

with_killfile=0 with_processes=0
# And longer, where the machine has become slower since.
for ((i = 0; i < moments || (with_processes == 0 && i < 5 * moments); i++)); do
  start >"$work/start.log" 2>&1 &
  launcher=$!
  moment=$((whole * (i + 1) * 11 / (moments * 10)))
  sleep "$(printf '%d.%06d' $((moment / 1000000)) $((moment % 1000000)))"
  # The subshell's child is dtool itself.
  pkill -KILL -P "$launcher" || true
  wait "$launcher" || true
  # Every second time without a breath in between: what is on its way meets the kill.
  if ((i % 2)); then sleep 0.5; fi
  before=$(ids)
  [[ -z $before ]] || ((with_processes += 1))
  if [[ -n $(recorded) ]]; then
    ((with_killfile += 1))
    expect_exit 0 dtool kill --all --yes --delete --grace 0.2
  else
    expect_equal '' "$before"
  fi
  sleep 0.3  # a start that slipped past the kill would show itself
  expect_equal '' "$(ids)"
  for host in 1 2 3; do expect_equal '' "$(on "$host" ls "/run/screen/S-$log_in_user" 2>/dev/null || true)"; done
done
# What holds the port for the reports from the check on ends with the connection.
expect_exit 0 dtool disconnect
no_id_at_all() { [[ -z $(ids holders_too) ]]; }
eventually 5 no_id_at_all
((with_killfile > 0 && with_killfile < i)) ||
  fail "the moments missed what they were to hit: a killfile was there at $with_killfile of $i"
((with_processes > 0)) || fail 'at no moment was anything running'
echo "$i moments over $((whole / 1000)) ms: $with_killfile with a killfile, $with_processes with processes"

on 1 rm -rf .dtool/runs
on 1 mkdir -p .dtool/runs/fresh .dtool/runs/old .dtool/runs/used/machine0
on 1 touch -d '2 days ago' .dtool/runs/old .dtool/runs/used
start
expect_equal 'fresh used' "$(on 1 ls .dtool/runs | grep -v '^bash_' | xargs)"
expect_exit 0 dtool kill --all --yes --delete --grace 0.2

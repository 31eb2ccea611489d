#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A run's whole id begins another's: that id names the first run alone, for `status`, `logs` and `kill`, which leaves the other one's
# processes, screens and folders; what begins both is an error that names them.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 2
tag=708192$$  # tells its processes from those of other labs on this machine
touch code
start() { expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --extra_tag "$1" -- bash -c "echo $1; exec sleep $tag.$2"; json 'd["run_id"]'; }
short=$(start short 1)

# dtool makes no such ids: the second run is the first one's likeness, by another name.
long=${short}1
sed "s/$short/$long/g" "$HOME/.dtool/killfiles/$short.killfile" >"$HOME/.dtool/killfiles/$long.killfile"
for host in 1 2; do
  machine=machine$((host - 1)) runs=/root/.dtool/runs
  on $host cp -r "$runs/$short" "$runs/$long"
  on $host rm "$runs/$long/$machine/process" "$runs/$long/$machine/log"
  on $host mkdir -p "/root/here/experiment_output/$long"
  log=/root/here/experiment_output/$long/$machine.log
  on $host sh -c "echo 'the long one' >$log; ln -s $log $runs/$long/$machine/log; echo 'exec sleep $tag.2' >$runs/$long/$machine/script"
  on $host sed -i 's/^\(coordinator .*\) .*/\1 19999/' "$runs/$long/$machine/supervise"
  program=$(on $host sh -c 'echo ~/.dtool/host/*/dtool-host')
  on $host env -C "$runs/$long/$machine" DTOOL_RUN_ID="$long" screen -dmS "dtool_${long}_$machine" "$program" session "$log"
done
count() { pgrep -fc "^sleep $tag\.$1" || true; }
both_run() { [[ $(count 1) == 2 && $(count 2) == 2 ]]; }
eventually 20 both_run

for command in status logs kill fetch; do
  expect_exit 2 dtool $command "${short%?}"
  expect_error "'${short%?}' begins the id of 2 runs: ($short, $long|$long, $short)"
done
expect_exit 0 dtool status "$short"
expect_output "^$short: running on 2 of 2 machines"
expect_exit 0 dtool status "$long"
expect_output "^$long: running on 2 of 2 machines"
expect_exit 0 dtool logs "$short"
expect_output '^machine0: short$'
expect_no_output 'the long one'

expect_exit 0 dtool kill --yes --delete "$short"
expect_error "^$short: [0-9]+ processes ended"
expect_equal '0 2' "$(count 1) $(count 2)"
expect_exit 0 dtool status "$long"
expect_output "^$long: running on 2 of 2 machines"
for host in 1 2; do expect_equal "$long" "$(on $host ls .dtool/runs)"; done

# And the other way round: the long one is killed, the short one stays.
short=$long long=${long}2
expect_exit 2 dtool kill --yes --delete "$long"
expect_equal 2 "$(count 2)"
expect_exit 0 dtool kill --yes --delete "$short"
expect_equal 0 "$(count 2)"
expect_equal '' "$(ls "$HOME/.dtool/killfiles")"

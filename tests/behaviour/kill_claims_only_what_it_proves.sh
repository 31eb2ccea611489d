#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool kill` says that none is left, and forgets the run, only where that is proven. Where the name leads to another host by now, or the
# run's folder is gone, it names the host, keeps the killfile and exits with 1; `status`, `list` and `logs -f` claim no more. What may have
# been handed to a tmux or screen of the user's is named.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program tmux
needs_program jq
needs_program script
lab 2 --shared_home
tag=518203$$  # tells its processes from those of other labs on this machine
touch code
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
name_of() { on "$1" uname -n; }
killfile() { echo "$HOME/.dtool/killfiles/$1.killfile"; }
config=$(<"$HOME/.ssh/config")
# A login name that one of several hosts answers to, as round robin in the DNS has it; all their keys are known.
lead_to() { printf 'Host login\n  HostName %s\n%s\n' "${address[$1 - 1]}" "$config" >"$HOME/.ssh/config"; }
# One that bears the id, and one that only its session tells, whose leader the state folder names.
cat >program.sh <<'END_OF_PROGRAM'
trap '' HUP
env -i bash -c "sleep $1.2 &"
exec sleep "$1.1"
END_OF_PROGRAM
start() { expect_exit 0 dtool run --json --runs_on login --extra_tag "$1" -- bash program.sh "$tag"; json 'd["run_id"]'; }
lives() { [[ $(pgrep -fcx "sleep $tag\.[12]" || true) == 2 ]]; }

# Another host with the same home.
lead_to 1
run_id=$(start moved)
eventually 10 lives
lead_to 2
expect_exit 1 dtool status "$run_id"
expect_output "^$run_id: unproven \(another host\) on 1 machine"
expect_output "^0 .* another host answers to this name, $(name_of 2) .*; it was started on $(name_of 1) "
expect_no_output 'rebooted|lost'
expect_exit 1 dtool status --json "$run_id"
expect_equal "unproven $(name_of 1) $(name_of 2)" "$(jq -r '.machines[0] | .state, .recorded_host.name, .found_host.name' "$out" | xargs)"
expect_equal 2 "$(jq -r '.machines[0] | .recorded_host.host_key, .found_host.host_key' "$out" | sort -u | grep -c "^ssh-ed25519 SHA256:")"
run dtool list --state
expect_output "$run_id .*unproven"
expect_exit 1 timeout 60 "$DTOOL" logs -f "$run_id"
expect_error 'another host answers to this name than the one where it was started, and no end is recorded'
# What reads from it says so, too.
strange="another host answers to this name, $(name_of 2) .*; the run was started on $(name_of 1) "
expect_exit 0 dtool logs "$run_id"
expect_error "machine0: $strange"
expect_exit 0 dtool fetch "$run_id" fetched
expect_error "machine0 \(login\): $strange"
expect_exit 1 script -qec "$DTOOL attach $run_id" /dev/null
expect_output "machine0 of $run_id: $strange"
expect_exit 1 dtool kill --yes --delete "$run_id"
expect_error "another host answers to this name, $(name_of 2) .*; the run was started on $(name_of 1) "
expect_error "hint: lead the name to $(name_of 1) "
expect_error 'the killfile is kept for login'
expect_no_error 'none is left'
expect_file "$(killfile "$run_id")"
lives || fail 'another host has ended the run'
expect_exit 1 dtool kill --yes --delete --json "$run_id"
expect_equal "unproven $(name_of 1) $(name_of 2)" "$(jq -r '.runs[0].hosts[0] | .failure, .recorded_host.name, .found_host.name' "$out" | xargs)"
# The host itself knows.
lead_to 1
expect_exit 0 dtool status "$run_id"
expect_output 'running on 1 machine|running on 1 of 1'

# A folder that is gone is missed, and not made anew. What only its session tells is not found then, where the leader is gone too.
on 1 bash -c "kill -KILL \$(cut -d' ' -f1 .dtool/runs/$run_id/machine0/process)"
on 1 mv ".dtool/runs/$run_id" elsewhere
expect_exit 1 dtool status "$run_id"
expect_output "^0 .* unproven \(no folder\) .* the run's folder is gone; [0-9]+ of its processes (is|are) left"
expect_exit 1 dtool kill --yes --delete "$run_id"
expect_error "the run's folder /root/.dtool/runs/$run_id is not there, so what was started cannot be known"
expect_no_error 'none is left'
expect_file "$(killfile "$run_id")"
expect_equal '' "$(on 1 ls .dtool/runs)"
expect_equal 1 "$(pgrep -fcx "sleep $tag\.2" || true)"
# So it is with a killfile of an older dtool, which did not record who the host is.
sed -E '/^(machine_id|host_name|boot_id|process_namespace|host_key|ended) = /d' "$(killfile "$run_id")" >old.killfile
expect_exit 1 dtool kill --yes --delete --screen_ids_file old.killfile
expect_error 'so what was started cannot be known'
expect_file old.killfile
on 1 mv elsewhere ".dtool/runs/$run_id"
expect_exit 0 dtool kill --screen_ids_file old.killfile
expect_error 'none is left$'
! lives || fail 'the run is left'
expect_equal '' "$(pgrep -fx "sleep $tag\.2" || true)"
# The run's own folder without the machine's: its launcher was killed before it started anything.
on 1 rm -r ".dtool/runs/$run_id/machine0"
expect_exit 0 dtool kill --yes --delete "$run_id"
expect_error 'none is left$'
expect_no_file "$(killfile "$run_id")"

# A start that stands still has looked for kill's mark already, and may go on later.
run_id=$(start locked)
on 1 flock ".dtool/runs/$run_id/machine0/lock" sleep "$tag.7" &
eventually 10 pgrep -fx "sleep $tag\.7"
expect_exit 1 dtool kill --yes --delete --grace 1 "$run_id"
expect_error "a start is at work in /root/.dtool/runs/$run_id/machine0 and does not end, so the run may still begin"
expect_no_error 'none is left'
expect_file "$(killfile "$run_id")"
pkill -fx "sleep $tag\.7"
expect_exit 0 dtool kill --yes --delete "$run_id"
expect_error 'none is left$'

# The way out for who knows better.
run_id=$(start forgotten)
expect_exit 0 dtool kill "$run_id"
on 1 rm -r ".dtool/runs/$run_id"
expect_exit 1 dtool kill --yes --delete "$run_id"
expect_error "hint: .*dtool kill $run_id --forget"
expect_exit 1 dtool kill --forget "$run_id"
expect_error 'something may be left on login'
expect_no_file "$(killfile "$run_id")"

# A tmux and a screen that were there before take work from the run.
on 1 tmux -S .tmux new-session -d "sleep $tag.3"
on 1 screen -dmS own sleep "$tag.3"
eventually 10 pgrep -fx "sleep $tag\.3"
expect_exit 0 dtool run --json --runs_on login -- bash -c "sleep 0.1; tmux -S ~/.tmux new-window -d 'exec sleep $tag.4'; screen -S own -X screen sleep $tag.5; exec sleep $tag.6"
run_id=$(json 'd["run_id"]')
for kind in 4 5 6; do eventually 20 pgrep -fx "sleep $tag\.$kind"; done
expect_exit 0 dtool kill --yes --delete --json "$run_id"
for each in "tmux .* 1 process .*: [0-9]* sleep $tag.4" "screen .* 1 process .*: [0-9]* sleep $tag.5"; do
  jq -r '.runs[0].hosts[0].unseen[]' "$out" | grep -q "^$each$" || fail "not named: $each"
done
expect_error 'no process is left that is known to be the run'
expect_error ": tmux \(pid [0-9]+\) has 1 process that began after the run: [0-9]+ sleep $tag.4; whether the run had them started cannot be told"
expect_equal '' "$(pgrep -fx "sleep $tag\.6" || true)"

# Called by the run itself, it ends what it can, and does not claim that its callers have ended.
cat >within.sh <<'END_OF_PROGRAM'
trap '' HUP TERM
until [ -e go ]; do sleep 0.1; done
"$DTOOL" kill --yes --delete --grace 0.3 "$DTOOL_RUN_ID" > said 2>&1
echo "exit code $?" >> said
until [ -e stop ]; do sleep 0.1; done
END_OF_PROGRAM
expect_exit 0 dtool run --json --in_place --runs_on local --export DTOOL="$DTOOL" --code_path "$work/code" -- bash within.sh
run_id=$(json 'd["run_id"]')
touch "$work/code/go"
eventually 30 grep -q 'exit code' "$work/code/said"
touch "$work/code/stop"
grep -q 'exit code 1$' "$work/code/said" && grep -q 'it has called this very dtool kill' "$work/code/said" || fail "$(<"$work/code/said")"
expect_file "$(killfile "$run_id")"
expect_exit 0 dtool kill --yes --delete "$run_id"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool kill` takes the beginning of an id, every run, those that are agreed to, or a killfile by its path, AllenAct's
# too; asks before it forgets one; and keeps the killfile of a run that it could not end everywhere.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program script
lab 2
touch code
tag=736455$$

start() { expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --extra_tag "$1" -- sleep "$tag"; json 'd["run_id"]'; }
recorded() { find "$HOME/.dtool/killfiles" -name "*.killfile"; }
killfile() { echo "$HOME/.dtool/killfiles/$1.killfile"; }
# dtool kill on a terminal of its own, with these answers
answer() {
  local answers=$1
  shift
  last_command="dtool $* with the answers ${answers//$'\n'/ }" last_code=0
  script -qec "$(printf '%q ' "$DTOOL" "$@")" /dev/null <<<"$answers" >"$out" 2>"$err" || last_code=$?
}

expect_exit 0 dtool kill --all
expect_error '^no run is recorded in '
expect_exit 0 dtool kill --all --json
expect_equal '[]' "$(json 'd["runs"]')"
expect_exit 2 dtool kill --yes
expect_error '^dtool: no run is recorded in '

one=$(start one) another=$(start another) third=$(start third)
expect_exit 2 dtool kill sleep_
expect_error "'sleep_' begins the id of 3 runs: "
expect_error '^hint: give more of the id of the one you mean$'
# One killfile is broken by hand: the message names the file, and the mended file is enough.
mkdir "$work/kept"
mv "$(killfile "$another")" "$(killfile "$third")" "$work/kept"
cp "$(killfile "$one")" "$work/whole"
for command in status kill; do
  words=("$command")
  [[ $command == status ]] || words+=("$one")
  sed 's/^seed = .*/garbage here/' "$work/whole" >"$(killfile "$one")"
  expect_exit 2 dtool "${words[@]}"
  expect_error "^dtool: $(killfile "$one"):[0-9]+:"
  expect_error '^hint: mend the file'
  sed 's/^seed = /seeed = /' "$work/whole" >"$(killfile "$one")"
  expect_exit 2 dtool "${words[@]}"
  expect_equal 1 "$(grep -c '^hint: ' "$err")"
  sed 's/^host = .*/host = "h 1"/' "$work/whole" >"$(killfile "$one")"
  expect_exit 2 dtool "${words[@]}"
  expect_error "^dtool: the killfile of $one, machine 0: 'h 1' is not a host"
done
cp "$work/whole" "$(killfile "$one")"
mv "$work/kept"/* "$(dirname "$(killfile "$one")")"
expect_exit 2 dtool kill nothing
expect_error "no run 'nothing' is recorded"
expect_exit 2 dtool kill ''
expect_exit 2 dtool kill --all "$one"
expect_error 'each say what to end'
expect_exit 2 dtool kill
expect_error 'no run was named'
expect_exit 2 dtool kill --yes
expect_error '^dtool: 3 runs run$'

# Without an answer the killfile stays, and with it the folders on the hosts.
expect_exit 0 dtool kill sleep_on
expect_no_process_with "$one"
expect_process_with "$another"
expect_file "$(killfile "$one")"
expect_equal "$one" "$(on 1 ls .dtool/runs | grep _one_)"
# A second time there is nothing to end, and nothing wrong with that.
expect_exit 0 dtool kill --delete "$one"
expect_error "$one: 0 processes ended on .*; none is left"
expect_no_file "$(killfile "$one")"
expect_equal '' "$(on 1 ls .dtool/runs | grep _one_ || true)"
# Who names it again is told what became of it, and what can still be done with it.
for command in kill status logs fetch plot; do
  expect_exit 2 dtool "$command" "$one"
  expect_error "^dtool: $one was ended, and its killfile was deleted at 20[0-9: -]+$"
  expect_error '^hint: dtool show, diff, rerun and run --resume still take it; its logs and outputs were left in .* on each host$'
done
expect_exit 2 dtool kill "${one%-*}"
expect_error "^dtool: $one was ended, and its killfile was deleted"
expect_exit 0 dtool show "$one"
expect_output '^forgotten +20[0-9: -]+$'

# Without a run it is about those that run, the newest first; of all others one line tells. Then comes the question whether to delete.
expect_exit 0 dtool run --runs_on h1 --extra_tag over --follow -- true
answer $'n\ny\nn' kill
expect_equal 0 "$last_code"
expect_no_output 'end true_over'
over=$(basename "$(ls "$HOME"/.dtool/killfiles/true_over*)" .killfile)
expect_output "$over has ended; to forget it: dtool kill $over --delete"
expect_output "end $third \(2 machines, started 20[0-9: -]*\)\? \[y/N\]"
expect_no_process_with "$another"
expect_process_with "$third"
expect_file "$(killfile "$another")"

# --yes says that a run is to end, and not that it is to be forgotten: with --all, with a run, and without.
expect_exit 0 dtool run --runs_on h1 --extra_tag more -- sleep "$tag"
more=$(basename "$(ls "$HOME"/.dtool/killfiles/sleep_more*)" .killfile)
for run in "$more" --all; do
  expect_exit 0 dtool kill --yes "$run"
  expect_no_process_with "$more"
  expect_error "^$more: [0-9]+ process(es)? ended on .*; none is left"
  expect_no_error '^deleted '
done
expect_no_process_with "$third"
expect_equal 4 "$(recorded | wc -l)"
expect_equal "$more" "$(on 1 ls .dtool/runs | grep _more_)"
expect_exit 0 dtool kill --yes
expect_error '^4 runs have ended \(dtool list shows them\); to forget one: dtool kill RUN --delete$'
expect_no_error ' ended on '
answer $'y\ny\ny' kill --yes "$over"
expect_file "$(killfile "$over")"
# A host that is gone tells nothing any more: what is known here is enough.
fault cut h1
expect_exit 0 dtool kill --yes --connect_timeout 1
expect_error '^4 runs have ended '
fault mend h1
third=$(start last)
expect_exit 0 dtool kill --yes --delete
expect_no_process_with "$third"
expect_no_file "$(killfile "$third")"
expect_equal 4 "$(recorded | wc -l)"
third=$(start last)
# Of several runs that a name may mean, it is about the one that runs. Nobody has seen the other end: its host is asked.
expect_exit 0 dtool run --json --runs_on h1 --extra_tag short -- sleep 0.1
short=$(json 'd["run_id"]')
expect_error "^h1: $third still runs there and shares cores and GPUs with this run; to end it: dtool kill $third$"
eventually 20 expect_no_process_with "$short"
expect_exit 0 dtool run --runs_on h1 --extra_tag short --follow -- true
expect_no_error "$short still"
expect_exit 0 dtool kill --yes sleep_
expect_error "^$third: [0-9]+ processes ended"
expect_no_process_with "$third"
# Of two with one tag that may run it ends neither.
third=$(start twin) second=$(start twin)
expect_exit 2 dtool kill --yes twin
expect_error "'twin' is part of the ids of 2 runs: $second, $third$"
expect_process_with "$third"
expect_process_with "$second"
expect_exit 0 dtool kill --yes "$second"
expect_exit 0 dtool kill --yes twin
expect_error "^$third: [0-9]+ processes ended"
third=$(start last)

# A host that cannot be reached keeps the killfile.
fault cut h2
expect_exit 1 dtool kill --connect_timeout 1 --yes "$third"
expect_error "$third: [0-9]+ processes ended on .*; the killfile is kept for .*: call it again"
expect_error "$(sed -n 2p "$DTOOL_LAB_FOLDER/hosts"): "
expect_file "$(killfile "$third")"
expect_process_with "$third"
expect_equal '' "$(on 1 pgrep -f "sleep $tag" || true)"
fault mend h2
expect_exit 0 dtool kill --all --yes --delete
expect_no_process_with "$third"
expect_equal '' "$(ls "$HOME/.dtool/killfiles")"

# A killfile that was cut short ends nothing and says so; a whole copy of it works from anywhere.
fourth=$(start fourth)
cp "$(killfile "$fourth")" copy
head -c 500 copy >"$(killfile "$fourth")"
expect_exit 2 dtool kill --all --yes
expect_error "$(killfile "$fourth"):[0-9]+"
expect_exit 2 dtool kill "$fourth"
expect_error 'hint: '
expect_process_with "$fourth"
expect_exit 1 dtool list
expect_exit 0 dtool kill --screen_ids_file copy
expect_no_process_with "$fourth"
expect_file copy
rm "$(killfile "$fourth")"

# AllenAct's own
hosts=("$(sed -n 1p "$DTOOL_LAB_FOLDER/hosts")" "$(sed -n 2p "$DTOOL_LAB_FOLDER/hosts")")
for host in 1 2; do
  on "$host" screen -dmS "abc_machine$((host - 1))" bash -c "sleep $tag.1 & (sleep $tag.1 &); sleep $tag.1"
  on "$host" screen -dmS "abc_machine$((host - 1))2" sleep "$tag.2"
done
printf '%s abc_machine0\n%s abc_machi' "${hosts[@]}" >ids.killfile
expect_exit 2 dtool kill --screen_ids_file ids.killfile --yes
expect_error 'ids.killfile:2: the line has no end'
printf '%s abc_machine0\n%s abc_machine1\n' "${hosts[@]}" >ids.killfile
expect_exit 0 dtool kill --screen_ids_file ids.killfile
expect_error 'ids.killfile: [0-9]+ processes ended on .*; none is left'
expect_file ids.killfile
expect_equal 2 "$(pgrep -fc "^sleep $tag.2")"
expect_equal '' "$(pgrep -f "^sleep $tag.1" || true)"

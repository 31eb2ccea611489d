#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `rerun` repeats a run with the code that it had, on its hosts and on others, though its checkout was changed, committed over and deleted since.
# It leaves the hosts' code folders alone. Code that is nowhere as it was sent is named, and nothing is started.
source "$(dirname "$0")/harness.sh"
needs_program git
needs_program python3
lab 3
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
killfiles() { ls "$HOME/.dtool/killfiles"; }
runs_on_hosts() { for i in 1 2 3; do on "$i" sh -c "ls .dtool/runs 2>/dev/null || true"; done | sort -u; }
remember() { before=$(killfiles) records=$(ls "$HOME/.dtool/records") runs=$(runs_on_hosts); }
nothing_started() {
  expect_equal "$before" "$(killfiles)"
  expect_equal "$records" "$(ls "$HOME/.dtool/records")"
  expect_equal "$runs" "$(runs_on_hosts)"
  expect_equal '' "$(find "$HOME/.dtool" -path "*/brought/*")"
}
start() {  # flags of run, and the program
  expect_exit 0 dtool run --json --follow --runs_on "${address[0]},${address[1]}" "$@"
  first=$(json 'd["run_id"]')
}
tree_of() { echo "$DTOOL_LAB_FOLDER/host$1/root/.dtool/runs/$2/tree"; }
refused() {  # the arguments of rerun, and then what the error says
  expect_exit 2 dtool rerun "${@:1:$#-1}"
  expect_error "${@: -1}"
  nothing_started
}

git init -q -b trunk code
cd code
git config user.name A
git config user.email a@example.org
mkdir 'the lib' data ../beside
printf 'version 1\n' >'the lib/module'
printf '#!/bin/sh\necho "$(cat "the lib/module"), $1, rank $RANK of $WORLD_SIZE, seed $DTOOL_SEED, data $(cat data/set), beside $(cat near/set), in $PLACE, commit $DTOOL_GIT_COMMIT"\n' >train.sh
chmod 755 train.sh
ln -s 'the lib/module' link
ln -s ../beside near
printf 'data\nexperiment_output\n' >.gitignore
git add .
git commit -qm first
commit=$(git rev-parse HEAD)
# What is not sent lies beside the code on each host.
for i in 1 2 3; do
  on "$i" mkdir -p code/data beside
  for each in code/data beside; do on "$i" sh -c "echo of $i >$each/set"; done
done
printf 'PLACE=here\n' >place.env
start --env_file place.env --seed 7 --exclude '*.md' -- ./train.sh 'two  words'
expect_exit 0 dtool logs "$first"
expect_output "^machine1: version 1, two  words, rank 1 of 2, seed 7, data of 2, beside of 2, in here, commit $commit-dirty\$"

# The checkout goes on, the hosts get its new code, and then it is gone.
printf 'version 2\n' >'the lib/module'
echo 'exit 9' >train.sh
git commit -qam second
second=$(dtool run --json --follow --runs_on "${address[0]},${address[1]}" -- true 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["run_id"])')
mv place.env ..
cd ..
rm -rf code
mkdir elsewhere
cd elsewhere
remember
refused "$first" "$first had --env_file place.env, which is gone from $work/here/code$"
again=(--env_file ../place.env)
expect_exit 0 dtool rerun "$first" "${again[@]}" --dry_run
expect_output "^repeats +$first$"
expect_output '^machine 0 +.*: code in ~/code, output in ~/code/experiment_output/train'
nothing_started
expect_exit 0 dtool rerun "$first" "${again[@]}" --json --follow
third=$(json 'd["run_id"]')
expect_equal "$first" "$(json 'd["rerun_of"]')"
expect_exit 0 dtool logs "$third"
expect_output "^machine0: version 1, two  words, rank 0 of 2, seed 7, data of 1, beside of 1, in here, commit $commit-dirty\$"
expect_output "^machine1: version 1, two  words, rank 1 of 2, seed 7, data of 2, beside of 2, in here, commit $commit-dirty\$"
# The code folders have the newer code, and the outputs.
for i in 1 2; do
  expect_equal 'version 2' "$(on "$i" cat 'code/the lib/module')"
  on "$i" test -d "code/experiment_output/$third"
done
expect_equal '' "$(find "$HOME/.dtool" -path "*/brought/*")"

# On a host that took no part, and once more from the run that repeated it. Nothing differs but the hosts.
expect_exit 0 dtool rerun "$third" "${again[@]}" --json --follow --runs_on "${address[2]}"
fourth=$(json 'd["run_id"]')
expect_exit 0 dtool logs "$fourth"
expect_output "^machine0: version 1, two  words, rank 0 of 1, seed 7, data of 3, beside of 3, in here, commit $commit-dirty\$"
expect_exit 0 dtool show "$fourth"
expect_output "^repeats +$third$"
expect_output "^code +$work/here/code, commit $commit of trunk"
expect_exit 0 dtool list
expect_output "^$fourth .*  repeats $third$"
expect_exit 0 dtool diff --json "$first" "$third"
expect_equal "[] ['repeats']" "$(json '"%s %s" % (d["code"], [each["name"] for each in d["settings"]])')"
expect_exit 0 dtool status --json "$third"
expect_equal "$first" "$(json 'd["rerun_of"]')"
# Here, where there is no code folder any more.
expect_exit 0 dtool rerun "$first" "${again[@]}" --follow --runs_on local --seed 8 --extra_tag here
expect_output "^machine0: version 1, two  words, rank 0 of 1, seed 8"
expect_equal 1 "$(find "$work/here/code/experiment_output" -name 'train.sh_here*' | wc -l)"
rm -r "$work/here/code"

# A tree that was changed on one machine: what it lacks comes from the other. One with edits on both is named.
remember
echo 'version 1, edited by hand' >"$(tree_of 1 "$first")/the lib/module"
rm "$(tree_of 1 "$first")/train.sh"
ln -s /etc/passwd "$(tree_of 1 "$first")/train.sh"
expect_exit 0 dtool rerun "$first" "${again[@]}" --follow
expect_output "^machine1: version 1, two  words, rank 1 of 2"
printf 'VERSION 1\n' >"$(tree_of 2 "$first")/the lib/module"
remember
refused "$first" "${again[@]}" "^dtool: the code of $first is nowhere as it was sent: there is no folder $work/here/code; the current folder $work/here/elsewhere: [0-9]+ files are not as they were sent: .*the lib/module.*; ${address[0]}: 2 files are not as they were sent: the lib/module, train.sh; ${address[1]}: 1 file is not as it was sent: the lib/module$"
expect_error "^hint: .*with a checkout of commit $commit(, with the edits of dtool show $first --patch,)? as the current folder it is looked for there"
# The file alone is enough, where the user is now.
mkdir 'the lib'
printf 'version 1\n' >'the lib/module'
expect_exit 0 dtool rerun "$first" "${again[@]}" --follow
expect_output "^machine0: version 1, two  words, rank 0 of 2"
rm -r 'the lib'

# The run's trees were deleted; the run that repeated it has its own.
expect_exit 0 dtool kill --yes --delete "$first"
remember
refused "$first" "${again[@]}" "${address[0]}: there is no folder .*$first/tree; ${address[1]}: there is no folder"
expect_error '^hint: .*goes with dtool kill --delete and list --prune'
expect_exit 0 dtool rerun "$third" "${again[@]}" --follow
expect_output "^machine0: version 1, two  words, rank 0 of 2"

# Runs of an older dtool, and what is damaged here.
remember
record=$HOME/.dtool/records/$third.json
listing=$HOME/.dtool/records/$third.listing
cp "$record" "$work/record"
cp "$listing" "$work/listing"
python3 - "$record" <<'END2'
import json, sys
record = json.load(open(sys.argv[1]))
del record["flags"]
json.dump(record, open(sys.argv[1], "w"))
END2
refused "$third" "${again[@]}" "$third cannot be rerun: an older dtool started it"
cp "$work/record" "$record"
rm "$listing"
records=$(ls "$HOME/.dtool/records")
refused "$third" "${again[@]}" "$third cannot be rerun: the list of its code's files in .*records is gone or damaged"
cp "$HOME/.dtool/records/$second.listing" "$listing"
records=$(ls "$HOME/.dtool/records")
refused "$third" "${again[@]}" "$third cannot be rerun: the list of its code's files in .*records is not the one that was sent"
cp "$work/listing" "$listing"
refused nothing_like_this 'no run nothing_like_this is recorded here'
expect_exit 2 dtool rerun
expect_exit 2 dtool rerun "$third" --resume "$third"
nothing_started

# Runs that have no tree of their own: in the code folder itself, and without code that was sent.
git init -q in_place
cd in_place
echo 'echo code of then, $1' >program.sh
start --in_place -- bash program.sh x
expect_exit 0 dtool rerun "$first" --follow
expect_output '^machine0: code of then, x$'
sed -i s/then/late/ program.sh
remember
refused "$first" "the code of $first is nowhere as it was sent: $work/here/elsewhere/in_place: 1 file is not as it was sent: program.sh$"
expect_error '^hint: it ran in the code folder itself, and no copy of the code was kept'
start --no_sync -- echo as it was
expect_exit 0 dtool rerun "$first" --follow
expect_error "the code of $first was not sent, and is not known"
expect_output '^machine1: as it was$'
cd ..

# A run of this machine alone, whose code was not sent at all.
mkdir alone
cd alone
echo 'echo "code of here, $1"' >program.sh
expect_exit 0 dtool run --json --follow -- bash program.sh x
first=$(json 'd["run_id"]')
cd ..
rm -r alone
expect_exit 0 dtool rerun "$first" --follow
expect_output '^machine0: code of here, x$'
expect_exit 0 dtool rerun "$first" --follow --runs_on "${address[2]}"
expect_output '^machine0: code of here, x$'

# Two at once.
for i in 1 2; do
  dtool rerun "$third" "${again[@]}" --follow --runs_on "${address[0]},${address[2]}" >"$work/at_once$i" 2>&1 &
  at_once[i]=$!
done
for i in 1 2; do
  wait "${at_once[i]}" || fail "one of two at once: $(<"$work/at_once$i")"
  grep -q '^machine1: version 1, two  words, rank 1 of 2' "$work/at_once$i"
done

# The file of its Python environment is in its code.
mkdir python
cd python
echo '# none' >requirements.txt
echo 'import sys; print("in", sys.prefix)' >program.py
start --environment requirements.txt -- python program.py
cd ..
rm -r python
expect_exit 0 dtool rerun "$first" --follow
expect_output '^machine1: in .*/\.dtool/environments/'
mkdir python
cd python
echo '# none' | tee requirements.txt >program.py
start --exclude requirements.txt --environment requirements.txt -- true
cd ..
rm -r python
remember
refused "$first" "$first had --environment requirements.txt, which is gone from $work/here/elsewhere/python"

# What dtool keeps on a host for reruns goes when it was not used for a month.
on 3 test -d .dtool/code
on 3 find .dtool/code -mindepth 1 -maxdepth 1 -exec touch -d '40 days ago' {} +
expect_exit 0 dtool run --follow --no_sync --code_path code --runs_on "${address[2]}" -- true
none_left() { [[ -z $(on 3 sh -c 'ls .dtool/code; ls .dtool/trees | grep dtool%code | grep -v lock') ]]; }
eventually 20 none_left

# A full disk, and Ctrl-C while the code comes.
if [[ $("$here/../lab" mode) == isolated ]]; then
  mkdir large
  cd large
  head -c 6000000 /dev/urandom >large
  start -- bash -c 'cksum large'
  cd ..
  rm -r large
  remember
  # shellcheck disable=SC2016
  expect_exit 2 unshare --mount bash -c 'mount -t tmpfs -o size=1m none "$HOME/.dtool/brought" && exec "$0" "$@"' "$DTOOL" rerun "$first"
  expect_error 'No space left on device'
  nothing_started
  fault slow h1 rate 2mbit
  env --default-signal=INT "$DTOOL" rerun "$first" >"$out" 2>"$err" &
  begun=$!
  come() { [[ $(find "$HOME/.dtool/brought" -type f -size +100k | wc -l) -gt 0 ]]; }
  eventually 30 come
  kill -INT "$begun"
  expect_ended 130 "$begun"
  expect_error 'interrupted: nothing is started'
  fault mend h1
  nothing_started
  # A full disk of a host.
  on 3 mkdir -p .dtool/code
  disk_on 3 size=1m /root/.dtool/code
  expect_exit 2 dtool rerun "$first" --runs_on "${address[2]}"
  expect_error "^  ${address[2]}: .*(No space left on device|disk full)"
  sudo_on 3 umount /root/.dtool/code
  nothing_started
  # One that does not answer holds nobody up whose code the next has.
  fault cut h1
  expect_exit 0 dtool rerun "$first" --runs_on "${address[2]}" --connect_timeout 2 --follow
  fault mend h1
fi

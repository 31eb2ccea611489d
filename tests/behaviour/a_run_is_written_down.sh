#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What ran is written down: `show` and `diff` tell the code, settings, hosts and end of runs without the checkout, after the
# run was forgotten, and from another launcher.
source "$(dirname "$0")/harness.sh"
needs_program git
needs_program python3
lab 2
record() { python3 -c "import json,sys; d=json.load(open('$HOME/.dtool/records/$run.json')); print($1)"; }
newest() { find "$HOME/.dtool/records" -name '*.json' -printf '%T@ %f\n' | sort -n | sed -n '$s/.* \(.*\)\.json$/\1/p'; }

git init -q -b trunk code
cd code
git config user.name A
git config user.email a@example.org
printf 'import sys\nprint("lr", 0.1)\nsys.exit(int(sys.argv[1]))\n' >train.py
printf 'KEY=very-secret\n' >keys.env
git add . && git commit -qm first
commit=$(git rev-parse HEAD)
sed -i 's/0\.1/0.2/' train.py
echo 'KEY=more-secret' >keys.env
echo notes >'new file'
git diff -- train.py >"$work/edits"

expect_exit 0 dtool run --follow --runs_on "$DTOOL_LAB_HOSTS" --seed 7 --nice 4 --extra_tag first --export TOKEN=sesame --env_file keys.env -- python3 train.py 0
first=$(newest) run=$(newest)
expect_exit 0 dtool show "$first" --json
expect_equal "$commit trunk True" "$(json '"%s %s %s" % (d["code"]["commit"], d["code"]["branch"], d["code"]["is_dirty"])')"
expect_equal "['new file']" "$(json 'd["code"]["untracked"]')"
expect_equal "['TOKEN', 'KEY']" "$(json 'sorted(d["variables"], reverse=True)')"
expect_equal "python3 train.py 0" "$(json '" ".join(d["program"])')"
expect_equal "7 ssh ended 0 1" "$(json '"%d %s %s %d %d" % (d["seed"], d["engine"], d["end"]["state"], d["end"]["exit_code"], d["end"]["attempts"])')"
expect_equal True "$(json 'all(m["cores"] > 0 and m["memory_bytes"] > 0 and m["identity"]["boot_id"] for m in d["machines"]) and len(d["machines"]) == 2')"
expect_equal True "$(json 'len(d["code"]["fingerprint"]) == 64 and d["dtool_version"] != ""')"
! json 'd' | grep -E 'sesame|-secret' || fail 'a value of a variable is shown'
expect_exit 1 grep -rE 'sesame|-secret' "$HOME/.dtool/records"
expect_exit 0 dtool show "$first" --patch
cmp "$out" "$work/edits"
expect_exit 0 dtool show first
expect_exit 2 dtool show nothing_like_this
expect_error 'no run nothing_like_this is recorded here'
expect_exit 0 dtool show "${first:0:20}"
expect_output "^code +.*commit $commit of trunk, 2 files"
expect_output '^edits +train\.py; 1 file unknown to git$'
expect_output "^machine 1 +.*core"
expect_output '^nice +4$'
expect_output '^ended +20.*: ended$'

# The python of the program, found out beside it.
eventually 20 on 1 test -e ".dtool/runs/$first/machine0/environment.txt"
[[ $(on 1 head -n 1 ".dtool/runs/$first/machine0/environment.txt") =~ ^python\ 3\.[0-9.]+$ ]] || fail 'the version of Python is not there'

# From another launcher with the killfile: the record on machine 0's host.
mv "$HOME/.dtool/records" "$work/records"
expect_exit 0 dtool show "$first" --json
expect_equal "$commit ended True" "$(json '"%s %s %s" % (d["code"]["commit"], d["end"]["state"], d["is_recorded"])')"
# Without the edits: they tell what was removed, too, which the files that were sent do not.
expect_equal "True" "$(json 'd["code"]["diff"] == "" and d["code"]["diff_left_out"].startswith("they are in the record on ")')"
expect_equal True "$(json 'd["packages"].startswith("python 3")')"
# A run of an older dtool has none there either.
on 1 rm ".dtool/runs/$first/record.json"
expect_exit 0 dtool show "$first" --json
expect_equal "False 7" "$(json '"%s %d" % (d["is_recorded"], d["seed"])')"
expect_error 'has no record here or on its first host'
mv "$work/records" "$HOME/.dtool/records"

# What was in a file that was renamed to one of --env_file, or was deleted, is nowhere.
git mv -f keys.env secret.env
expect_exit 0 dtool run --follow --runs_on h1 --extra_tag moved --env_file secret.env -- true
run=$(newest)
expect_equal "['keys.env']" "$(record 'd["code"]["deleted"]')"
! dtool show "$run" --patch 2>/dev/null | grep 'secret' || fail 'the edits have a secret'
! dtool show "$run" --json | grep -E -- '-secret' || fail 'the record has a secret'
git mv -f secret.env keys.env

# Another one, which fails: its cause, and where the two differ.
sed -i 's/0\.2/0.3/' train.py
git rm -q --cached keys.env && rm keys.env
git add -A
git commit -qm second
expect_exit 1 dtool run --follow --runs_on h1 --seed 8 --extra_tag second -- python3 train.py 3
second=$(newest) run=$second
expect_equal "failed False" "$(record '"%s %s" % (d["end"]["state"], d["code"]["is_dirty"])')"
expect_exit 0 dtool diff "$first" "$second" --json
expect_equal "changed" "$(json '[x["now"] for x in d["code"] if x["name"] == "train.py"][0]')"
expect_equal "7 8" "$(json '["%s %s" % (x["before"], x["now"]) for x in d["settings"] if x["name"] == "seed"][0]')"
expect_equal True "$(json 'any(x["name"].startswith("machine 1") and x["now"] == "" for x in d["hosts"])')"
expect_exit 0 dtool diff "$first" "$second"
expect_output '^  seed +7 +8$'
expect_output '^  nice +4 +-$'
expect_output '^  train\.py +there +changed$'
expect_exit 0 dtool diff "$first" "$first"
expect_output '^code, settings and hosts are the same$'
expect_exit 2 dtool diff "$first"
expect_error 'dtool diff compares two runs, and 1 was named'
expect_exit 2 dtool show train
expect_exit 2 dtool show "$second" --patch
expect_error "$second has no recorded edits"

# What kill ends is known afterwards, though the hosts know nothing any more.
expect_exit 0 dtool run --runs_on h2 --extra_tag third -- sleep 600
third=$(newest) run=$third
expect_exit 0 dtool show "$third" --json
expect_equal None "$(json 'd["end"]')"
expect_exit 0 dtool show "$third"
expect_output '^ended +not yet: running$'
expect_exit 0 dtool diff "$first" "$third"
expect_output "to +$third  running$"
expect_exit 0 dtool kill --all --yes --delete
expect_equal killed "$(record 'd["end"]["state"]')"
expect_exit 0 dtool show "$third"
expect_output '^ended +20.*: killed$'
run=$first
expect_equal True "$(record 'd["packages"].startswith("python 3")')"

# A record that is spoilt is named.
echo '{"format": 1' >"$HOME/.dtool/records/$third.json"
expect_exit 2 dtool show "$third"
expect_error "records/$third.json is no record of a run"
echo '{"format": 9}' >"$HOME/.dtool/records/$third.json"
expect_exit 2 dtool show "$third"
expect_error 'another format'

# --quiet prints the run's id alone, and show says that no code was sent.
expect_exit 0 dtool run --quiet --no_sync --runs_on h1 -- true
expect_equal 1 "$(wc -l <"$out")"
run=$(<"$out")
expect_file "$HOME/.dtool/records/$run.json"
expect_exit 0 dtool show "$run"
expect_output '^code +none was sent$'
# Of runs that began in one second, it is the one that `status` and `logs` take.
cp "$HOME/.dtool/records/$run.json" "$HOME/.dtool/records/${run:0:-6}zzzzzz.json"
expect_exit 0 dtool show
expect_error "^the newest run is $run\$"
# Of those of one name it is the one that was not forgotten.
expect_exit 0 dtool show "${run:0:-23}"
expect_error "^[0-9]+ runs fit true: this is the newest that was not forgotten, $run\$"
expect_exit 0 dtool kill --quiet --delete "$run"

# A start that cannot be recorded starts nothing.
rm -rf "$HOME/.dtool/records"
: >"$HOME/.dtool/records"
expect_exit 2 dtool run --runs_on h1 -- true
expect_error 'nothing was started, since it could not be recorded'
expect_equal '' "$(ls "$HOME/.dtool/killfiles")"
expect_equal '' "$(on 1 ls .dtool/runs)"

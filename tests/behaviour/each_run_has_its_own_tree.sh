#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a run was started with, it is started again with: whatever a later run, an editor or a program does to the code folder meanwhile.
# What its processes write is its own, is fetched and is kept when the tree goes. --in_place runs in the code folder.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 2
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
root() { echo "$DTOOL_LAB_FOLDER/host$1/root"; }
mkdir code
cd code
mkdir -p sub logs/of/it
echo 'module of version 1' >sub/module
cat >program.sh <<'END'
echo "version 1, attempt $DTOOL_ATTEMPT, $(cat sub/module)"
echo "$DTOOL_RUN_ID" >result
echo "$DTOOL_RUN_ID" >logs/of/it/result
[ "$DTOOL_ATTEMPT" = 0 ] || exit 0
until [ -e "$HOME/go" ]; do sleep 0.1; done
exit 3
END
edit_to() {  # $1: the version
  sed -i "s/version [0-9]/version $1/" program.sh sub/module
}
begun() { [[ $(grep -l 'attempt 0' "$(root 1)/code/experiment_output/$1/machine0.log" "$(root 2)/code/experiment_output/$1/machine1.log" | wc -l) = 2 ]]; }
over() { dtool status "$1" --json >"$out" && [[ $(json '{m["state"] for m in d["machines"]}') = "{'exited'}" ]]; }

# Two runs of different code at once on the same hosts; each is started again with its own.
start() { expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --max_restarts 1 "$@" -- bash program.sh && id=$(json 'd["run_id"]') && eventually 30 begun "$id"; }
start
first=$id
edit_to 2
start
second=$id
# An editor that writes in place, and one that replaces the file.
for host in 1 2; do
  sed 's/version 2/version 7/' program.sh >"$(root $host)/code/program.sh"
  echo 'module of version 8' >"$(root $host)/new"
  mv "$(root $host)/new" "$(root $host)/code/sub/module"
  touch "$(root $host)/go"
done
for each in "$first 1" "$second 2"; do
  read -r id version <<<"$each"
  eventually 60 over "$id"
  for i in 0 1; do
    log=$(root $((i + 1)))/code/experiment_output/$id/machine$i.log
    expect_equal "version $version, attempt 0, module of version $version|version $version, attempt 1, module of version $version" \
      "$(grep '^version' "$log" | paste -sd '|')"
  done
done

# What was written is the run's, and comes with its outputs.
for host in 1 2; do expect_no_file "$(root $host)/code/result"; done
expect_exit 0 dtool fetch "$first" "$work/fetched"
expect_equal "$first $first" "$(cat "$work"/fetched/machine[01]/machine[01].written/result | xargs)"
expect_equal '' "$(find "$work/fetched" -name 'program.sh' -o -name module)"

# The trees of runs that have ended go, and then everything of a run.
expect_exit 0 dtool list --prune
expect_error '^deleted the copies of the code of 2 runs$'
expect_equal 2 "$(grep -Ec "^[^ ]*1[^ ]*2[^ ]*: what the run wrote into its copy of the code is kept in .*/machine\\*\\.written\$" "$err")" # a line for both hosts
for host in 1 2; do
  expect_equal '' "$(find "$(root $host)/.dtool/runs" -name '*tree*')"
  expect_equal "$second" "$(cat "$(root $host)/code/experiment_output/$second/machine$((host - 1)).written/result")"
done
expect_exit 0 dtool list --prune --json
expect_equal 0 "$(json 'd["pruned"]')"
expect_exit 0 dtool kill --all --yes --delete
for host in 1 2; do expect_equal '' "$(ls "$(root $host)/.dtool/runs")"; done

# A run that goes on from another writes into the same outputs, and what each wrote is kept apart. What is mounted in a tree stays as it is.
expect_exit 0 dtool run --json --follow --force --runs_on "${address[0]}" -- bash -c 'echo "$DTOOL_RUN_ID" >result'
first=$(json 'd["run_id"]')
expect_exit 0 dtool run --json --follow --resume "$first"
second=$(json 'd["run_id"]')
expect_exit 0 dtool list --prune
outputs=$(root 1)/code/experiment_output/$first
expect_equal "$first $second" "$(cat "$outputs/machine0.written/result" "$outputs/machine0.$second.written/result" | xargs)"
expect_exit 0 dtool run --json --follow --runs_on "${address[0]}" -- mkdir mounted
id=$(json 'd["run_id"]')
sudo_on 1 sh -c "mkdir /root/remote && echo precious >/root/remote/file && mount --bind /root/remote /root/.dtool/runs/$id/tree/mounted"
expect_exit 0 dtool list --prune
expect_error "/tree/mounted is another file system"
expect_equal precious "$(on 1 cat /root/remote/file)"
expect_exit 0 dtool kill "$id" --yes --delete
expect_error "$id of the run is left: .*/tree/mounted is another file system"
expect_equal precious "$(on 1 cat /root/remote/file)"
sudo_on 1 umount "/root/.dtool/runs/$id/tree/mounted"
on 1 rm -r "/root/.dtool/runs/$id"
expect_exit 0 dtool kill --all --yes --delete
for host in 1 2; do expect_equal '' "$(ls "$(root $host)/.dtool/runs")"; done

# A run that has not ended keeps its tree, whatever is asked of the others; kill --delete leaves nothing but what it wrote.
rm "$(root 1)/go" "$(root 2)/go"
start --force
expect_exit 0 dtool list --prune
expect_error '^no ended run has a copy of its code$'
expect_file "$(root 1)/.dtool/runs/$id/tree/program.sh"
expect_exit 0 dtool kill "$id" --yes --delete
expect_error "what the run wrote into its copy of the code is kept in .*/code/experiment_output/$id/machine[*].written"
for host in 1 2; do
  expect_equal '' "$(ls "$(root $host)/.dtool/runs")"
  expect_equal "$id" "$(cat "$(root $host)/code/experiment_output/$id/machine$((host - 1)).written/result")"
done

# What was not sent is found where it always was: a data set beside the code, in it, and outputs below the code folder.
for host in 1 2; do
  mkdir -p "$(root $host)/code/data"
  echo "data of $host" >"$(root $host)/code/data/set"
  echo "weights of $host" >"$(root $host)/code/sub/weights"
done
# shellcheck disable=SC2016
expect_exit 0 dtool run --follow --runs_on "$DTOOL_LAB_HOSTS" -- \
  bash -c 'cat data/set sub/weights && echo new >data/made && mkdir -p experiment_output && echo mine >experiment_output/mine && echo "$DTOOL_CODE_DIR" && pwd'
for host in 1 2; do
  expect_output "^machine$((host - 1)): data of $host\$"
  expect_output "^machine$((host - 1)): weights of $host\$"
  expect_file "$(root $host)/code/data/made"
  expect_equal mine "$(cat "$(root $host)/code/experiment_output/mine")"
done
expect_output '^machine1: /root/code$'
expect_output '^machine1: /root/.dtool/runs/[^/]*/tree$'

# In place: as the folder is at the moment of the start.
start --in_place
edit_to 3
expect_exit 0 dtool run --runs_on "$DTOOL_LAB_HOSTS" --in_place -- true
touch "$(root 1)/go" "$(root 2)/go"
eventually 60 over "$id"
expect_equal 'version 2, attempt 0, module of version 2|version 3, attempt 1, module of version 3' \
  "$(grep '^version' "$(root 1)/code/experiment_output/$id/machine0.log" | paste -sd '|')"
expect_equal "$id" "$(cat "$(root 1)/code/result")"
expect_no_file "$(root 1)/.dtool/runs/$id/tree"
printf '[run]\nown_tree = false\n' >>"$HOME/.dtool/config.toml"
expect_exit 0 dtool run --follow --runs_on "$DTOOL_LAB_HOSTS" -- pwd
expect_output '^machine0: /root/code$'
sed -i '/\[run\]/,$ d' "$HOME/.dtool/config.toml"

# This machine: the current folder may be edited while the run is under way.
rm -f "$HOME/go"
expect_exit 0 dtool run --json --max_restarts 1 -- bash program.sh
id=$(json 'd["run_id"]')
log=experiment_output/$id/machine0.log
eventually 30 grep -q 'attempt 0' "$log"
edit_to 4
touch "$HOME/go"
eventually 60 over "$id"
expect_equal 'version 3, attempt 0, module of version 3|version 3, attempt 1, module of version 3' "$(grep '^version' "$log" | paste -sd '|')"
expect_no_file result

# Again, where files were edited.
for times in 1 2; do
  echo "edited $times" >"$(root 1)/code/sub/module"
  expect_exit 2 dtool run --follow --runs_on "${address[0]}" -- cat sub/module
  expect_error 'a file in ~/code is not as dtool sent it and differs from the code tree: sub/module$'
  expect_exit 0 dtool run --follow --force --runs_on "${address[0]}" -- cat sub/module
  expect_output '^machine0: module of version 4$'
done
expect_exit 0 dtool run --follow --code_path "$work/elsewhere" -- cat sub/module
expect_output 'module of version 4$'
expect_exit 0 dtool kill --all --yes --delete

# A full disk: the host and the disk are named, and nothing is left or started.
disk_on 2 size=2m /root/.dtool/runs
head -c 4000000 /dev/urandom >large
expect_exit 2 dtool run --runs_on "$DTOOL_LAB_HOSTS" -- sleep 1000
expect_error "^  ${address[1]}: cannot make the run's own copy of the code in /root/.dtool/runs/[^:]*: large: .*No space left on device"
expect_error 'nothing was started'
for host in 1 2; do expect_equal '' "$(on $host ls -A .dtool/runs)"; done
expect_exit 0 dtool list
expect_no_output 'sleep'
expect_exit 0 dtool run --follow --in_place --runs_on "$DTOOL_LAB_HOSTS" -- true

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# /bin/hostname on nodes of one's choice is one line each with dtool: a task on each of three nodes, nine tasks on three, tasks on chosen
# nodes, and several steps in one allocation; over SSH the same words come.
source "$(dirname "$0")/harness.sh"
slurm_lab 4
echo code >file

# hosts COUNT HOST...: the last output has so many lines with the name of each of these hosts, and of no other.
hosts() {
  local count=$1 host wanted=''
  shift
  for host; do
    for ((i = 0; i < count; i++)); do wanted+="$(on "$host" hostname)"$'\n'; done
  done
  expect_equal "$(sort <<<"${wanted%$'\n'}")" "$(grep -o 'lab-[^ ]*-[0-9]*$' "$out" | sort)"
}
in_slurm() { expect_exit 0 timeout 100 "$DTOOL" run --follow --launcher slurm --runs_on h1 "$@" -- /bin/hostname; }

in_slurm --nodes 3
hosts 1 h2 h3 h4
in_slurm --nodes 3 --ntasks_per_node 3
hosts 3 h2 h3 h4
for machine in 0 1 2; do expect_equal 3 "$(grep -c "^machine$machine r[0-8]: lab-" "$out")"; done
in_slurm --nodes 2 --ntasks_per_node 3 --nodelist h2,h4
hosts 3 h2 h4
in_slurm --nodes 2 --constraint even
hosts 1 h2 h4

# steps SALLOC_ARGUMENTS DTOOL_ARGUMENTS...: in one allocation, a step with each of these arguments of `dtool run`, the output of each in
# step1, step2, ...
steps() {
  local words='' n=0 arguments
  for arguments in "${@:2}"; do
    words+="$DTOOL run --follow $arguments > step$((++n)) && "
  done
  expect_exit 0 timeout 150 ssh h1 "mkdir -p steps && cd steps && echo code > file && salloc $1 bash -c '${words% && }'"
}
step() { cp "$DTOOL_LAB_FOLDER/host1/root/steps/step$1" "$out"; }
steps '--nodes 3 --ntasks-per-node 2' '--nodes 2 --ntasks_per_node 2 -- /bin/hostname' '-- /bin/hostname'
step 1
mapfile -t nodes < <(grep -o '[234]$' "$out" | sort -u)
hosts 2 "${nodes[@]}"
expect_equal 4 "$(wc -l <"$out")"
step 2
hosts 2 h2 h3 h4

# Six tasks, and not two a node: Slurm fills the first node, and gives the others the one that each must have. dtool's numbers agree.
# shellcheck disable=SC2016
steps '--nodes 3 --ntasks 6' '-- bash -c "echo \$LOCAL_WORLD_SIZE \$LOCAL_RANK \$RANK of \$WORLD_SIZE"'
step 1
expect_equal '4 0 0 of 6;4 1 1 of 6;4 2 2 of 6;4 3 3 of 6;1 0 4 of 6;1 0 5 of 6' "$(sed 's/^machine.\( r[0-9]\)\?: //' "$out" | sort -k 3n | paste -sd';')"

# Without a scheduler.
expect_exit 0 timeout 100 "$DTOOL" command --runs_on 'h[2-4]' --command /bin/hostname
hosts 1 h2 h3 h4
expect_exit 0 timeout 100 "$DTOOL" run --follow --runs_on h2,h4 --nproc_per_node 3 -- /bin/hostname
hosts 3 h2 h4
expect_exit 0 timeout 100 "$DTOOL" kill --all --yes --delete

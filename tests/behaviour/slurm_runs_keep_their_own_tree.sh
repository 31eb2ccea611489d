#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A job that Slurm puts back into the queue, one that is still waiting there, and a restart in the job run what they were submitted with,
# though the code folder has other code by then.
source "$(dirname "$0")/harness.sh"
slurm_lab 3
mkdir code
cd code
# shellcheck disable=SC2016
echo 'echo "version 1, rank $RANK, attempt $DTOOL_ATTEMPT"; [ -e "$DTOOL_CODE_DIR/go" ] || sleep 1000' >program.sh

# Two nodes run; a second job waits for them.
expect_exit 0 dtool run --json --launcher slurm --nodes 2 -- bash program.sh
first=$(json 'd["run_id"]')
said() { { grep -hs "$2" experiment_output/"$1"/machine*.log || true; } | sort | paste -sd "|"; }
both_said() { [[ $(said "$1" "version $2" | tr '|' '\n' | wc -l) -ge $3 ]]; }
eventually 60 both_said "$first" 1 2
sed -i 's/version 1/version 2/' program.sh
expect_exit 0 dtool run --json --launcher slurm --nodes 2 -- bash program.sh
second=$(json 'd["run_id"]')
sed -i 's/version 2/version 3/' program.sh
expect_exit 0 dtool status "$second"
expect_output 'pending'
touch go

# Slurm puts the first back: it goes on with the code that it began with. Then the second begins.
job=$(sed -n 's/^job = "\([0-9]*\)".*/\1/p' "$HOME/.dtool/killfiles/$first.killfile")
[[ -n $job ]] || fail "no job in $(cat "$HOME/.dtool/killfiles/$first.killfile")"
scontrol requeue "$job"
eventually 150 both_said "$first" 1 4
eventually 100 both_said "$second" 2 2
for id in "$first" "$second"; do
  ! grep -rqs 'version 3' experiment_output/"$id" || fail "$id ran code that came later"
done
expect_equal '' "$(said "$first" 'version 2')"
over() { dtool status "$1" --json >"$out" && [[ $(json '{m["state"] for m in d["machines"]}') = "{'exited'}" ]]; }
eventually 100 over "$first"
eventually 100 over "$second"

# A restart in the job.
rm go
# shellcheck disable=SC2016
echo 'echo "version 4, rank $RANK, attempt $DTOOL_ATTEMPT"; [ "$DTOOL_ATTEMPT" = 0 ] || exit 0; until [ -e "$DTOOL_CODE_DIR/go" ]; do sleep 0.2; done; exit 3' >program.sh
expect_exit 0 dtool run --json --launcher slurm --nodes 2 --max_restarts 1 -- bash program.sh
id=$(json 'd["run_id"]')
eventually 60 both_said "$id" 4 2
sed -i 's/version 4/version 5/' program.sh
touch go
eventually 100 over "$id"
expect_equal 'version 4, rank 0, attempt 0|version 4, rank 0, attempt 1|version 4, rank 1, attempt 0|version 4, rank 1, attempt 1' "$(said "$id" '^version')"

expect_exit 0 dtool kill --all --yes --delete
expect_equal '' "$(ls "$HOME/.dtool/runs")"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool run --launcher slurm` gives the run to Slurm through a login host: its processes get their numbers on the nodes, and
# status, logs, fetch, list and kill are as under SSH.
source "$(dirname "$0")/harness.sh"
slurm_lab 3
mkdir code
cd code
# shellcheck disable=SC2016
printf '%s\n' 'echo "rank $RANK of $WORLD_SIZE, local $LOCAL_RANK of $LOCAL_WORLD_SIZE, machine $GROUP_RANK $DTOOL_MACHINE_ID, seed $DTOOL_SEED, word $1, $SPACED"' \
  'echo "$MASTER_ADDR:$MASTER_PORT" > "$DTOOL_OUTPUT_DIR/listener$RANK"' 'sleep "${2:-0}"' >task.sh

# What would be given to sbatch, without asking anybody.
expect_exit 0 dtool run --launcher slurm --runs_on nosuchhost --nodes 2 --ntasks-per-node 2 --gres gpu:1 --partition 'a b' --time 1-0 \
  --mem 1G --cpus_per_task 2 --constraint odd --exclusive --qos q --account a --nodelist h2 --sbatch_arg=--comment='it"s' --dry_run -- true
for line in --nodes=2 --ntasks-per-node=2 --gres=gpu:1 '--partition="a b"' --time=1-0 --mem=1G --cpus-per-task=2 --constraint=odd --exclusive --qos=q \
  --account=a --nodelist=h2 '--comment="it\\"s"' --requeue; do
  expect_output "^#SBATCH $line\$"
done
expect_no_output '^#SBATCH --signal' # the program is the user's, and SIGUSR1 would end it

# Two nodes of two processes each.
expect_exit 0 dtool run --launcher slurm --runs_on "$login" --nodes 2 --ntasks_per_node 2 --seed 7 --export SPACED="a  'b' \$c" --follow -- bash task.sh 'x  y'
# Slurm shows a job's script to others; the variable is in the file of the user's own that the job's steps read.
on "$login" bash -c '[[ $(grep -ls SPACED /root/.dtool/runs/*/machine0/*) == */machine0/rank ]]'
for rank in 0 1 2 3; do
  expect_output "^machine$((rank / 2)) r$rank: rank $rank of 4, local $((rank % 2)) of 2, machine $((rank / 2)) $((rank / 2)), seed 7, word x  y, a  'b' \\\$c\$"
done
expect_error 'given to Slurm on .* as job [0-9]+; 2 nodes, 4 processes, seed 7'
expect_exit 0 dtool list --state
expect_output '  ended  '
id=$(basename "$(ls "$HOME"/.dtool/killfiles/*)" .killfile)
expect_exit 0 dtool fetch "$id" fetched
expect_equal 1 "$(find fetched -name 'listener?' -exec cat {} + | sort -u | wc -l)"
expect_equal 4 "$(find fetched -name 'listener?' | wc -l)"
expect_exit 0 dtool kill --all --yes --delete

# Running: status names the nodes, the killfile the job, and kill cancels it. The processes bear the run's id though sbatch and srun are told
# to hand on no variables.
expect_exit 0 dtool run --launcher slurm --runs_on "$login" --nodes 2 --sbatch_arg=--export=NONE --json -- bash task.sh word 1000
id=$(json 'd["run_id"]') job=$(json 'd["job"]')
expect_equal slurm "$(json 'd["launcher"]')"
grep -qx "job = \"$job\"" "$HOME/.dtool/killfiles/$id.killfile" || fail 'the killfile has no job'
runs_on_both() { [[ $(dtool status --json | grep -c '"node": "h[23]"') == 2 ]]; }
eventually 30 runs_on_both
bears_id_on_both() { [[ $(ps -o args= -p "$(processes_with "$id" | paste -sd,)" | grep -cx 'sleep 1000') == 2 ]]; }
eventually 20 bears_id_on_both
expect_exit 0 dtool status --json
expect_equal "['running', 'running'] ['h2', 'h3'] ['$job', '$job']" \
  "$(json '[m["state"] for m in d["machines"]], sorted(m["node"] for m in d["machines"]), [m["job"] for m in d["machines"]]' | tr -d '()' | sed 's/\], \[/] [/g')"
expect_exit 0 dtool kill --yes --delete --json
expect_equal "job $job True" "$(json 'str(d["runs"][0]["cancelled"]) + " " + str(d["runs"][0]["none_left"])')"
expect_equal '' "$(squeue --noheader)"
expect_no_process_with "$id"
on h1 test ! -e "/root/.dtool/runs/$id" || fail 'the state is left on the login host'

# Waiting: status has Slurm's reason. This machine is a login host too.
expect_exit 0 dtool run --launcher slurm --partition closed -- true
expect_exit 0 dtool status
expect_output 'pending \(PartitionDown\)'
expect_exit 0 dtool list --state
expect_output '  pending  '
# Who follows its log hears that it was killed, though kill takes its folder away.
timeout 60 "$DTOOL" logs -f >"$work/followed" 2>&1 </dev/null &
follower=$!
eventually 30 test -s "$work/followed"
sleep 2
expect_exit 0 dtool kill --yes --delete
expect_error 'job [0-9]+ cancelled, 0 processes ended'
expect_equal '' "$(squeue --noheader)"
followed=0
wait "$follower" || followed=$?
expect_equal 1 "$followed"
grep -q killed "$work/followed" || fail "the follower was told: $(cat "$work/followed")"

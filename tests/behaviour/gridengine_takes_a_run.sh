#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool run --launcher gridengine` gives the run to Grid Engine through a submit host: its processes get their numbers on the hosts of a
# parallel environment, and status, logs, fetch, list and kill are as under SSH.
source "$(dirname "$0")/harness.sh"
gridengine_lab 3
mkdir code
cd code
# shellcheck disable=SC2016
printf '%s\n' 'echo "rank $RANK of $WORLD_SIZE, local $LOCAL_RANK of $LOCAL_WORLD_SIZE, machine $GROUP_RANK $DTOOL_MACHINE_ID, seed $DTOOL_SEED, word $1, $SPACED"' \
  'echo "$MASTER_ADDR:$MASTER_PORT" > "$DTOOL_OUTPUT_DIR/listener$RANK"' 'sleep "${2:-0}"' >task.sh
run_there() { dtool run --launcher gridengine --runs_on "$login" --parallel_environment one "$@"; }

# What would be given to qsub, without asking anybody.
expect_exit 0 dtool run --launcher gridengine --runs_on nosuchhost --nodes 2 --ntasks-per-node 2 --parallel_environment p --partition q --time 1-0 \
  --account a --qsub_arg='-l gpu=1' --dry_run -- true
for line in '-pe p 4' '-q q' '-l h_rt=86400' '-P a' '-l gpu=1' '-S /bin/bash' '-notify' '-r n'; do expect_output "^#\\$ $line\$"; done

# Two hosts of two processes each.
expect_exit 0 dtool run --launcher gridengine --runs_on "$login" --parallel_environment two --nodes 2 --ntasks_per_node 2 --seed 7 --export SPACED="a  'b' \$c" --follow -- bash task.sh 'x  y'
# A job's script can be seen by others; the variable is in a file of the user's own.
on "$login" bash -c '[[ $(grep -ls SPACED /root/.dtool/runs/*/machine0/*) == */machine0/rank ]]'
for rank in 0 1 2 3; do
  expect_output "^machine$((rank / 2)) r$rank: rank $rank of 4, local $((rank % 2)) of 2, machine $((rank / 2)) $((rank / 2)), seed 7, word x  y, a  'b' \\\$c\$"
done
expect_error 'given to Grid Engine on .* as job [0-9]+; 2 nodes, 4 processes, seed 7'
expect_exit 0 dtool list --state
expect_output '  ended  '
id=$(basename "$(ls "$HOME"/.dtool/killfiles/*)" .killfile)
expect_exit 0 dtool fetch "$id" fetched
expect_equal 1 "$(find fetched -name 'listener?' -exec cat {} + | sort -u | wc -l)"
expect_equal 4 "$(find fetched -name 'listener?' | wc -l)"
expect_exit 0 dtool kill --all --yes --delete

# One process needs no parallel environment.
expect_exit 0 dtool run --launcher gridengine --runs_on "$login" --follow -- bash task.sh alone
expect_output '^machine0: rank 0 of 1, local 0 of 1, machine 0 0, .* word alone'
expect_exit 0 dtool kill --all --yes --delete

# Running: status names the hosts, the killfile the job, and kill deletes it.
expect_exit 0 run_there --nodes 2 --json -- bash task.sh word 1000
id=$(json 'd["run_id"]') job=$(json 'd["job"]')
expect_equal gridengine "$(json 'd["launcher"]')"
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
expect_equal '' "$(on h1 qstat)"
expect_no_process_with "$id"
on h1 test ! -e "/root/.dtool/runs/$id" || fail 'the state is left on the submit host'

# What hides from the signals of Grid Engine is ended as well: in a session of its own, deaf to TERM, and root's, which Grid Engine spares.
printf '%s\n' 'trap "" TERM' 'setsid bash -c "trap : TERM; while :; do sleep 1; done" &' 'while :; do sleep 1; done' >stubborn.sh
expect_exit 0 run_there --nodes 2 --json -- bash stubborn.sh
id=$(json 'd["run_id"]')
runs_twice_on_both() { [[ $(ps -o args= -p "$(processes_with "$id" | paste -sd,)" | grep -c 'stubborn.sh\|trap : TERM') == 4 ]]; }
eventually 30 runs_twice_on_both
expect_exit 0 dtool kill --yes --delete
expect_no_process_with "$id"
expect_equal '' "$(on h1 qstat)"

# Waiting: status has Grid Engine's word for it.
expect_exit 0 run_there --nodes 2 --qsub_arg=-h -- true
waits() { expect_exit 0 dtool status && expect_output 'pending \(hqw\)'; }
eventually 20 waits
expect_exit 0 dtool list --state
expect_output '  pending  '
# Who follows its log hears that it was killed, though kill takes its folder away.
timeout 60 "$DTOOL" logs -f >"$work/followed" 2>&1 </dev/null &
follower=$!
eventually 30 test -s "$work/followed"
sleep 2
expect_exit 0 dtool kill --yes --delete
expect_error 'job [0-9]+ cancelled, 0 processes ended'
expect_equal '' "$(on h1 qstat)"
followed=0
wait "$follower" || followed=$?
expect_equal 1 "$followed"
grep -q killed "$work/followed" || fail "the follower was told: $(cat "$work/followed")"

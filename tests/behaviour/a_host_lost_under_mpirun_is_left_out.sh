#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A host that is cut off while mpirun's processes run there is named as lost, and the run starts again without it; when its cable
# is plugged in again, it has ended its own part.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program mpirun
lab 3
# shellcheck disable=SC2016
at_end '[[ -z ${failed:-} ]] || tail -n 30 "$DTOOL_LAB_FOLDER"/host?/root/here/experiment_output/*/*.log "$DTOOL_LAB_FOLDER"/host?/root/.dtool/runs/*/*/{supervision,cause,attempt} >&2'
let_h1_reach_the_others
# shellcheck disable=SC2016
echo 'echo "rank $RANK of $WORLD_SIZE, attempt $DTOOL_ATTEMPT"; [[ $DTOOL_ATTEMPT != 0 ]] || exec sleep 1000' >wait.sh
expect_exit 0 timeout 60 "$DTOOL" run --launcher mpi --runs_on 'h[1-3]' --max_restarts 1 --json -- bash wait.sh
run_id=$(json 'd["run_id"]')
all_wait() { [[ $(dtool logs "$run_id" | grep -c 'attempt 0') == 3 ]]; }
eventually 60 all_wait
# A machine that was never heard is missed by nobody.
for host in 2 3; do
  on "$host" timeout 30 bash -c 'until [ "$(cat ~/.dtool/runs/'"$run_id"'/machine*/supervision 2> /dev/null)" = ok ]; do sleep 0.1; done'
done
fault cut h3
log=$DTOOL_LAB_FOLDER/host1/root/here/experiment_output/$run_id/machine0.log
has_begun_again() { grep -q 'of 2, attempt 1' "$log"; }
eventually 240 has_begun_again
grep -q 'machine 2 (h3) was lost' "$log" || fail 'the lost host is not named'
fault mend h3
is_over() { expect_exit 1 dtool status "$run_id" --json; expect_equal '[0, 0]' "$(json '[m.get("exit_code") for m in d["machines"][:2]]')"; }
eventually 60 is_over
eventually 60 expect_no_process_with "$run_id"

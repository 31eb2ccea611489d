#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool kill` leaves alone: other runs on the same hosts, also one that a process of the run started; ids that begin
# alike; other users' processes.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 2 --share "$(dirname "$DTOOL")"

pid_of() { pgrep -f "^[^ ]*sleep $1\$"; }
in_background() { on 1 setsid --fork "$@" </dev/null >/dev/null 2>&1; }
tag=827364$$

touch code
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" -- bash -c "sleep $tag.1"
other=$(json 'd["run_id"]')
cat >nest.sh <<END
[ "\$RANK" = 1 ] || "$DTOOL" run --no_sync --quiet --runs_on local --code_path ~ -- \
  bash -c 'env -i bash -c "sleep $tag.3 & sleep $tag.3"; :'
sleep $tag.2
END
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" -- bash nest.sh
mine=$(json 'd["run_id"]')
expect_process_with "$mine"
eventually 20 pid_of "$tag.2"
eventually 20 pid_of "$tag.3"
nested=$(on 1 ls .dtool/runs | grep -vx -e "$mine" -e "$other")

# What looks like the run, and is not
in_background setpriv --reuid=nobody --regid=nogroup --clear-groups env DTOOL_RUN_ID="$mine" sleep "$tag.4"
in_background env DTOOL_RUN_ID="${mine}1" sleep "$tag.5"
in_background env DTOOL_RUN_ID="${mine/./x}" ITS_NAME="DTOOL_RUN_ID=$mine" sleep "$tag.6"
in_background env XDTOOL_RUN_ID="$mine" sleep "$tag.7"
in_background env A_LINE="
DTOOL_RUN_ID=$mine" sleep "$tag.8"
for kind in 4 5 7 8; do eventually 10 pid_of "$tag.$kind"; done
on 2 setsid screen -dmS "dtool_${mine}_machine10" sleep "$tag.9"

expect_exit 0 dtool kill --yes --delete "$mine"
expect_error "$mine: [0-9]+ processes ended on .*; no process is left that is known to be the run"
expect_equal '' "$(processes_with "$mine" | while read -r pid; do [[ $(stat -c %U "/proc/$pid") == nobody ]] || echo "$pid"; done)"
! pid_of "$tag.2" || fail 'something of the run itself is left'
for kind in 1 3 4 5 7 8 9; do pid_of "$tag.$kind" >/dev/null || fail "process $kind was ended too"; done
expect_equal 2 "$(pid_of "$tag.1" | wc -l)"
expect_equal 2 "$(pid_of "$tag.3" | wc -l)"
expect_process_with "$nested"
expect_process_with "$other"

# The nested run is recorded where it was started, and ended from there.
expect_exit 0 on 1 "$DTOOL" kill --yes --delete "$nested"
! pid_of "$tag.3" || fail 'the nested run is left'
expect_process_with "$other"

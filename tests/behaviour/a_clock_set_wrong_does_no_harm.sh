#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# One host's clock is two days ahead, another's 400 days behind, then the launcher's is wrong: `run`, `status`, `logs`, `fetch`, `kill`
# and the trainer do what they do elsewhere. The clock is what libfaketime tells to all that log-ins start (but dtool-host, which is
# static); files keep the kernel's times, as they would those of a file server.
source "$(dirname "$0")/harness.sh"
needs_isolation
library=$(find /usr/lib/*/faketime -name libfaketime.so.1 2>/dev/null | head -n 1)
if [[ -z $library ]]; then
  [[ -z ${CI:-} ]] || fail 'libfaketime is not installed, and CI could have it: tests/dependencies'
  skip 'needs libfaketime'
fi
lab 3
tag=586970$$  # tells its processes from those of other labs on this machine
offset() { fault restart-sshd "$1" -o "SetEnv=LD_PRELOAD=$library FAKETIME=$2 NO_FAKE_STAT=1"; }
offset h2 +2d
offset h3 -400d
hours_off() { expect_exit 0 dtool command --quiet --runs_on "$1" --command 'date +%s'; echo $((($(sed 's/.*: //' "$out") - $(date +%s)) / 3600)); }
hours=$(hours_off h2)
((hours >= 47 && hours <= 48)) || fail "the test does not test: the clock is $hours hours off"

echo first >code
# shellcheck disable=SC2016
job='cat code; for i in 1 2 3; do echo "line $i"; sleep 0.1; done; cp code "$DTOOL_OUTPUT_DIR/result"'
for content in first second; do
  echo $content >code
  expect_exit 0 timeout 60 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" --extra_tag $content -- bash -c "$job"
  for id in 0 1 2; do expect_equal "$(printf '%s\n' $content 'line 1' 'line 2' 'line 3')" "$(sed -n "s/^machine$id: //p" "$out")"; done
done
expect_exit 0 dtool status
expect_error 'the newest run is bash_second'
expect_output 'ended on 3 machines'
expect_exit 0 dtool logs --machine 1
expect_output '^machine1: line 3$'
expect_exit 0 dtool fetch bash_second fetched
for id in 0 1 2; do expect_equal second "$(cat fetched/machine$id/result)"; done
expect_exit 0 dtool fetch bash_second fetched --json
expect_equal '[0, 0, 0]' "$(json '[m["files"] for m in d["machines"]]')"
expect_exit 0 dtool kill --all --yes --delete

if [[ -x ${DTOOL_TRAINER:-} ]]; then
  expect_exit 0 timeout 100 "$DTOOL" run digits --follow --runs_on "$DTOOL_LAB_HOSTS" --config_kwargs '{"train":{"epochs":1}}'
  expect_output '^machine0: test accuracy 0\.'
fi

# The launcher's, an hour behind the run before.
expect_exit 0 env NO_FAKE_STAT=1 LD_PRELOAD="$library" FAKETIME=-1h "$DTOOL" run --json --runs_on "$DTOOL_LAB_HOSTS" -- sleep "$tag"
run_id=$(json 'd["run_id"]')
for clock in -1h +30d; do
  expect_exit 0 env NO_FAKE_STAT=1 LD_PRELOAD="$library" FAKETIME=$clock "$DTOOL" status "$run_id"
  expect_output 'running on 3 of 3 machines'
done
expect_exit 0 env NO_FAKE_STAT=1 LD_PRELOAD="$library" FAKETIME=+30d "$DTOOL" kill --yes --delete "$run_id"
expect_error 'none is left'
expect_no_process_with "$run_id"
expect_equal '' "$(pgrep -fx "sleep $tag" || true)"

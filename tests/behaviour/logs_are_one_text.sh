#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool logs` prints all machines' logs behind their machines, of a run that goes on or has ended, from the newest run on; whole or
# the last lines, some machines alone, like lines once; a host that does not answer is named, and mistakes are told.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
touch code
# shellcheck disable=SC2016
expect_exit 0 timeout 60 "$DTOOL" run --follow --quiet --runs_on "$DTOOL_LAB_HOSTS" --extra_tag first -- \
  bash -c 'echo alike; echo "rank $RANK"; seq 1 20000; printf "bytes \377\001\r\n"; printf "no end of line"'

expect_exit 0 timeout 60 "$DTOOL" logs
expect_error '^the newest run is .*first'
for id in 0 1 2; do
  expect_output "^machine$id: rank $id$"
  expect_equal "$(printf 'alike\nrank %s\n' $id; seq 1 20000; printf 'bytes \377\001\r\nno end of line\nx')" "$(sed -n "s/^machine$id: //p" "$out"; echo x)"
done
expect_equal 60012 "$(wc -l <"$out")"

expect_exit 0 timeout 60 "$DTOOL" logs bash_first --tail 3 --machine 2 --machine 0
expect_equal '0 2' "$(grep -ao '^machine[0-9]' "$out" | tr -d '[:lower:]' | sort -u | xargs)"
expect_equal 6 "$(wc -l <"$out")"
expect_no_error 'newest'
expect_exit 0 timeout 60 "$DTOOL" logs --tail 0 --quiet
expect_equal '' "$(cat "$out" "$err")"

expect_exit 0 timeout 60 "$DTOOL" logs --fold
expect_equal 1 "$(grep -ac alike "$out")"
expect_output '^machine\[0-2\]: alike$'
expect_equal 20006 "$(wc -l <"$out")"
expect_equal 'machine0: rank 0,machine1: rank 1,machine2: rank 2' "$(grep -aE 'rank' "$out" | sort | paste -sd,)"

expect_exit 0 timeout 60 "$DTOOL" logs --json --tail 1
expect_equal "0 012 no end of line" "$(json '"%d %s %s" % (d["exit_code"], "".join(str(m["id"]) for m in d["machines"]), d["machines"][2]["log"])')"

# A run that prints nothing.
expect_exit 0 timeout 60 "$DTOOL" run --quiet --runs_on "$DTOOL_LAB_HOSTS" --extra_tag silent -- true
expect_exit 0 timeout 60 "$DTOOL" logs true_silent
expect_no_output .
expect_error '^the logs are empty$'
expect_exit 0 timeout 60 "$DTOOL" logs true_silent --machine 0
expect_error '^the log is empty$'

# A run that goes on; one host cut off, one without its log.
expect_exit 0 timeout 60 "$DTOOL" run --quiet --runs_on "$DTOOL_LAB_HOSTS" --extra_tag second -- bash -c 'echo here; sleep 443322'
here() { expect_exit 0 timeout 60 "$DTOOL" logs && expect_equal 3 "$(grep -c ': here$' "$out")"; }
eventually 30 here
fault cut h2
rm "$DTOOL_LAB_FOLDER"/host3/root/.dtool/runs/*second*/machine2/log
find "$DTOOL_LAB_FOLDER/host3/root" -name 'machine2.log' -path '*second*' -delete
expect_exit 1 timeout 60 "$DTOOL" logs --connect_timeout 2
expect_equal 'machine0: here' "$(cat "$out")"
expect_error '2 of 3 hosts failed: reading the logs of .*second'
expect_error "^  ${address[1]}: "
expect_error "^  ${address[2]}: there is no log: /"
fault mend h2
expect_exit 0 timeout 60 "$DTOOL" logs bash_first --tail 1 --color always
expect_output $'\x1b\\[34mmachine0:\x1b\\[0m no end'

expect_exit 2 timeout 60 "$DTOOL" logs --machine 7
expect_error 'second.* has no machine 7'
expect_error 'hint: its machines are 0 to 2'
expect_exit 2 timeout 60 "$DTOOL" logs --tail -3
expect_error 'tail'
expect_exit 2 timeout 60 "$DTOOL" logs nosuch
expect_error 'nosuch'
expect_exit 0 timeout 60 "$DTOOL" kill --all --yes --delete
expect_exit 2 timeout 60 "$DTOOL" logs
expect_error 'no run is recorded'

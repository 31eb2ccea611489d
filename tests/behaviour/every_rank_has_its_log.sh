#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Several processes a machine: each line of the logs says its rank, lines are whole and in order in a flood, nothing that a rank wrote
# before its death is lost, and each rank's own file has its bytes unchanged. `dtool logs` shows the lines of ranks, with a pattern, since
# a time, and those of the first failure; mistakes are told.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 2
touch code
ranks_of() { echo "here/experiment_output/$(basename "$HOME"/.dtool/killfiles/*"$1"*.killfile .killfile)/machine$2.ranks"; }

# All write at once, as fast as they can; the last line of each has no end.
# shellcheck disable=SC2016
expect_exit 0 timeout 120 "$DTOOL" run --follow --quiet --runs_on "$DTOOL_LAB_HOSTS" --nproc_per_node 3 --extra_tag flood -- \
  bash -c 'seq -f "flood $RANK %.0f" 1 50000; printf "\r10%%\r20%%\ndone $RANK"'
followed() { grep -a "^machine$(($1 / 3)) r$1: " "$out" | sed "s/^machine[01] r[0-5]: //"; }
for rank in 0 4; do
  expect_equal "$(seq -f "flood $rank %.0f" 1 50000 | md5sum)" "$(followed $rank | grep -a flood | md5sum)"
  expect_equal "20% done $rank" "$(followed $rank | tail -n 2 | xargs)"
done
expect_equal '' "$(grep -avE '^machine[01] r[0-5]: (flood [0-5] [0-9]+|[12]0%|done [0-5])$' "$out" || true)"
raw=$(ranks_of flood 1)
expect_equal "$(seq -f 'flood 5 %.0f' 1 50000 | cat - <(printf '\r10%%\r20%%\ndone 5') | md5sum)" "$(on 2 cat "$raw/r5.log" | md5sum)"

# Some ranks, a pattern, the last lines of these; the hosts choose, so that little comes over the network.
expect_exit 0 dtool logs --rank 1,5 --tail 1
expect_equal 'machine0 r1: done 1,machine1 r5: done 5' "$(sort "$out" | paste -sd,)"
expect_exit 0 dtool logs --rank 4 --grep '^flood 4 (17|4999[0-9])$' --tail 2
expect_equal 'machine1 r4: flood 4 49998,machine1 r4: flood 4 49999' "$(paste -sd, "$out")"
expect_exit 0 dtool logs --grep 'flood [25] 7$'
expect_equal 'machine0 r2: flood 2 7,machine1 r5: flood 5 7' "$(sort "$out" | paste -sd,)"
expect_exit 0 dtool logs --grep 'no such line'
expect_no_output .
expect_exit 0 dtool logs -f --rank 2 --grep 'done' --json
expect_equal '[0, 1, 2] r2: done 2' "$(json '"%s %s" % (d["machines"][0]["ranks"], d["machines"][0]["log"])')"
expect_exit 0 dtool logs --fold --grep '^20%'
expect_equal 'machine[0-1]: 20%' "$(sort -u "$out")"
expect_exit 2 dtool logs --rank 6
expect_error 'has no rank 6'
expect_error 'hint: .*0, 1, 2, 3, 4, 5'
expect_exit 2 dtool logs --rank x
expect_exit 2 dtool logs --grep 'a(b'
expect_error "'a\\(b' is no extended regular expression: "
expect_exit 2 dtool logs --grep "$(printf 'a%.0s' {1..1001})"
expect_error 'more than 1000 bytes'
expect_exit 2 dtool logs --since soon
expect_error "'soon' is neither a length of time"
expect_exit 2 dtool logs --first_failure --rank 1
expect_exit 0 dtool logs --first_failure
expect_error 'no failure of .*flood.* is known'

# A rank dies in the middle of a line, while the others flood; the cause is its own last line.
# shellcheck disable=SC2016
expect_exit 1 timeout 120 "$DTOOL" run --follow --quiet --runs_on "$DTOOL_LAB_HOSTS" --nproc_per_node 3 --extra_tag half -- \
  bash -c '[ "$RANK" != 4 ] || { sleep 2; echo before; printf "half a line"; exit 7; }; while :; do echo "rank $RANK goes on"; done'
expect_output '^machine1 r4: half a line$'
expect_error 'rank 4 on machine 1.* ended with exit code 7: half a line'
expect_exit 0 dtool logs --first_failure
expect_equal 'rank 4 on machine1 failed first' "$(head -n 1 "$out" | cut -d: -f1)"
expect_equal 'machine1 r4: before,machine1 r4: half a line' "$(tail -n 2 "$out" | paste -sd,)"
expect_equal 3 "$(wc -l <"$out")"
expect_exit 0 dtool logs --first_failure --json
expect_equal '1 4 1' "$(json '"%d %d %d" % (d["first_failure"]["machine"], d["first_failure"]["rank"], len(d["machines"]))')"

# The process that puts the ranks' lines into the log is killed, again and again: no line is lost, and none comes twice.
# shellcheck disable=SC2016
expect_exit 0 dtool run --quiet --runs_on h1 --nproc_per_node 2 --extra_tag merged -- bash -c 'for i in {1..40}; do echo "line $i of $RANK"; sleep 0.1; done'
merging() { on 1 ps -eo pid=,ppid=,sid=,comm= | awk '$4 == "dtool-host" { parent[$1] = $2; leads[$1] = $1 == $3 } END { for (each in parent) if (leads[each] && parent[each] in parent) print each }'; }
for _ in 1 2 3; do
  is_merged() { [[ -n $(merging) ]]; }
  eventually 10 is_merged
  on 1 kill -KILL "$(merging)"
  sleep 0.5
done
expect_exit 0 dtool logs -f
for rank in 0 1; do expect_equal "$(seq -f "machine0 r$rank: line %.0f of $rank" 1 40)" "$(grep " r$rank: " "$out")"; done

# It waits for a host that does not answer, and ends at once when it is told to.
fault cut h2
env --default-signal=INT "$DTOOL" logs bash_half --first_failure --connect_timeout 60 >"$out" 2>"$err" </dev/null &
sleep 2
kill -INT $!
expect_ended 130 $!
fault mend h2

# What ranks write when they are told to end is in the log; since when; the newest line of each machine is told without a mark.
# shellcheck disable=SC2016
expect_exit 0 dtool run --quiet --runs_on "$DTOOL_LAB_HOSTS" --nproc_per_node 2 --extra_tag told -- \
  bash -c 'trap "sleep 1; echo bye \$RANK; exit 0" TERM; echo early; sleep 14; echo late; while :; do sleep 0.1; done'
is_late() { expect_exit 0 dtool logs && expect_equal 4 "$(grep -c ': late$' "$out")"; }
eventually 40 is_late
expect_exit 0 dtool logs --since 9s
expect_equal 4 "$(grep -c ' r[0-3]: late$' "$out")"
expect_no_output early
expect_exit 0 dtool logs --since 1h --rank 3
expect_equal 'machine1 r3: early,machine1 r3: late' "$(paste -sd, "$out")"
expect_exit 0 dtool status --json
expect_equal late "$(json 'd["machines"][1]["last_line"]')"
expect_exit 0 timeout 60 "$DTOOL" kill bash_told --yes --delete
expect_equal 'r0: bye 0,r1: bye 1' "$(on 1 sh -c "cat here/experiment_output/*told*/machine0.log" | grep bye | sort | paste -sd,)"
expect_equal '' "$(on 1 pgrep -x dtool-host || true)"

# It is killed together with the process that starts it again: the log says where the lines are.
# shellcheck disable=SC2016
expect_exit 0 dtool run --quiet --runs_on h1 --nproc_per_node 2 --extra_tag both -- bash -c 'echo early; sleep 5'
begun() { expect_exit 0 dtool logs && expect_equal 2 "$(grep -c ': early$' "$out")"; }
eventually 20 begun
# shellcheck disable=SC2046
on 1 kill -KILL $(on 1 pgrep -f 'dtool-host ranks')
told() { expect_exit 0 dtool logs && grep -q "the ranks' last lines may be in .*/machine0\.ranks alone: the processes that put them here were killed$" "$out"; }
eventually 20 told

# One process a machine: nothing changes, and its lines are its rank's.
# shellcheck disable=SC2016
expect_exit 0 dtool run --follow --quiet --runs_on "$DTOOL_LAB_HOSTS" --extra_tag single -- bash -c 'echo "r9: as it is $RANK"'
expect_equal 'machine0: r9: as it is 0,machine1: r9: as it is 1' "$(sort "$out" | paste -sd,)"
expect_exit 0 dtool logs --rank 1
expect_equal 'machine1: r9: as it is 1' "$(cat "$out")"
on 1 sh -c '! ls -d here/experiment_output/*single*/*.ranks' >"$work/none" 2>&1

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A rank of the bundled trainer dies on one of three hosts, is stopped or finds no file, or a host is cut off: all hosts stop,
# every log that can ends with the same line, and `dtool run --follow` shows it once and exits with 1.
source "$(dirname "$0")/harness.sh"
needs_isolation
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer, which was not built'
lab 3
cat >endless.toml <<'END'
workload = "classifier"
data.source = "digits"
data.train_samples = 3000
data.test_samples = 300
train.epochs = 1000000
checkpoint.every_epochs = 0
distributed.collective_timeout_seconds = 4
END

# start_run TAG [FLAG]...: in the background, until it trains.
start_run() {
  local tag=$1
  shift
  : >"$out"
  timeout 170 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" --extra_tag "$tag" "$@" endless.toml >"$out" 2>"$err" </dev/null &
  waiting=$!
  eventually 60 grep -q samples/s "$out"
  run_id=$(basename "$(ls "$HOME"/.dtool/killfiles/*"$tag"*)" .killfile)
}

end_of_run() {
  expect_ended 1 "$waiting" "dtool run --follow, $1"
}

last_line_on() { fault exec "h$1" bash -c 'tail -n 1 "$(ls -t ~/.dtool/runs/'"$run_id"'/machine*/log | head -n 1)"'; }

# expect_cause PATTERN HOST...: the last line of each of these hosts' logs, and the end of what is followed.
expect_cause() {
  local cause host
  cause=$(last_line_on "$2")
  [[ $cause =~ ^dtool:\ the\ run\ failed:\ $1$ ]] || fail "the log ends with '$cause', not '$1'"
  for host in "${@:2}"; do expect_equal "$cause" "$(last_line_on "$host")"; done
  expect_equal 1 "$(grep -cF "dtool: the cause: ${cause#dtool: the run failed: }" "$err")"
  ! grep -qF "$cause" "$out" || fail 'the cause stands among the logs, too'
}

start_run killed
signal_rank KILL 1 h2
end_of_run 'a worker killed'
expect_cause 'rank 1 on machine 1 \([0-9.]*\) was killed by signal 9 \(KILL\)' 1 2 3
# Those that were ended for it did not fail.
expect_error '1 of 3 hosts failed'
expect_error ': exit code 137 \(signal 9\)$'
expect_error 'its processes were ended because the run failed$'
eventually 10 expect_no_process_with "$run_id"

start_run crashed --nproc_per_node 2
signal_rank SEGV 5 h3
end_of_run 'a worker crashed'
expect_cause 'rank 5 on machine 2 \([0-9.]*\) was killed by signal 11 \(SEGV\)' 1 2 3
eventually 10 expect_no_process_with "$run_id"

# The others have waited for it as long as a collective operation may take, and say so; it is the cause all the same.
start_run frozen
signal_rank STOP 1 h2
end_of_run 'a worker stopped'
expect_cause 'rank 1 on machine 1 \([0-9.]*\) is stopped' 1 2 3
eventually 10 expect_no_process_with "$run_id"

# The host that is cut off finds out as well, and loses machine 0 from its side. Once the run has failed, the launcher does not
# try for minutes to reach that host.
start_run cut --lost_after 5
# A machine that machine 0 has never heard is not watched.
is_watched() { on "$1" bash -c 'grep -qx ok ~/.dtool/runs/'"$run_id"'/machine*/supervision'; }
eventually 10 is_watched 2
fault cut h2
cut_at=$SECONDS
own_end() { [[ $(last_line_on "$1") == 'dtool: the run failed: '* ]]; }
for host in 1 2 3; do eventually 60 own_end "$host"; done
end_of_run 'a host cut off'
((SECONDS - cut_at < 70)) || fail "the launcher tried for $((SECONDS - cut_at)) s to reach the host that was cut off"
fault mend h2
expect_cause 'machine 1 \([0-9.]*\) was lost: no sign of life for 5 s' 1 3
[[ $(last_line_on 2) =~ no\ answer\ from\ machine\ 0\ at\ .*\ for\ 5\ s ]] || fail "the host that was cut off says '$(last_line_on 2)'"
eventually 10 expect_no_process_with "$run_id"

# A mistake that shows when the ranks load their data, on one host alone.
printf '%s\n' 'workload = "classifier"' 'data.source = "mnist"' 'data.path = "/root/images"' 'data.download = false' >mnist.toml
for host in 1 3; do
  on "$host" bash -c 'mkdir /root/images && cd /root/images && for part in train t10k; do
    { printf "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02"; head -c 8 /dev/zero; } > $part-images-idx3-ubyte
    printf "\0\0\x08\x01\0\0\0\x02\0\0" > $part-labels-idx1-ubyte
  done'
done
: >"$out"
expect_exit 1 timeout 100 "$DTOOL" run --json --follow --runs_on "$DTOOL_LAB_HOSTS" --max_restarts 3 --extra_tag mistake mnist.toml
[[ $(json 'd["cause"]') =~ ^rank\ 1\ on\ machine\ 1\ .*\ ended\ with\ exit\ code\ 2:\ no\ train-images.*/root/images.*\(hint: ]] ||
  fail "the cause is $(json 'd["cause"]')"
expect_equal 2 "$(json '[f["exit_code"] for f in d["failures"]][1]')"
run_id=$(json 'd["run_id"]')
expect_exit 1 dtool status "$run_id"
! grep -q 'attempt 2' "$out" || fail 'a mistake was tried again'
expect_exit 0 timeout 60 "$DTOOL" kill --all --yes --delete

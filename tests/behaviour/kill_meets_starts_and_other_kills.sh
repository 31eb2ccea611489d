#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool kill` while `dtool run` is starting, at moments over the whole of it: the run is up on all machines and recorded, or nothing of
# it is left and the launcher says so. Two kills of a run at once, or of all runs, end it together, and both say that none is left.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
tag=697081$$  # tells its processes from those of other labs on this machine
moments=${MOMENTS:-6}
cat >program.sh <<END
(setsid bash -c 'trap "" TERM HUP; sleep $tag & sleep $tag' &)
sleep $tag
END
start() { exec "$DTOOL" run --runs_on "$DTOOL_LAB_HOSTS" -- bash program.sh; }
killfiles() { ls "$HOME/.dtool/killfiles" 2>/dev/null || true; }
alive() { pgrep -fcx "sleep $tag" || true; }
nothing_is_left() {
  expect_equal 0 "$(alive)"
  expect_equal '' "$(killfiles)"
  for host in 1 2 3; do
    expect_equal '' "$(on $host ls "/run/screen/S-$log_in_user" 2>/dev/null || true)"
    expect_equal '' "$(on $host find .dtool/runs -mindepth 2 2>/dev/null || true)"
  done
}
(start) >/dev/null 2>&1
began=${EPOCHREALTIME/./}
(start) >/dev/null 2>&1
whole=$((${EPOCHREALTIME/./} - began))
expect_exit 0 dtool kill --all --yes --delete --grace 0.2
nothing_is_left

# What came of a launcher and of the kill that met it.
judge() {
  case $killed,$started in
    0,0) ! grep -q 'no run is recorded' "$err" || { run dtool status && expect_output 'running on 3 of 3 machines' && expect_exit 0 dtool kill --all --yes --delete --grace 0.2; } ;;
    0,1) grep -q 'dtool kill came first' "$work/start.err" || fail "the launcher does not say why: $(cat "$work/start.err")"; ((++met)) ;;
    *) fail "kill ended with $killed, run with $started: $(cat "$err" "$work/start.err")" ;;
  esac
  sleep 0.2  # a start that slipped past the kill would show itself
  nothing_is_left
}

met=0
for ((i = 0; i < moments; i++)); do
  start >"$work/start.out" 2>"$work/start.err" </dev/null &
  starting=$!
  moment=$((whole * (i + 1) * 12 / (moments * 10)))
  sleep "$(printf '%d.%06d' $((moment / 1000000)) $((moment % 1000000)))"
  run dtool kill --all --yes --delete --grace 0.2
  killed=$code started=0
  wait "$starting" || started=$?
  judge
done

# Between the record and the start there are milliseconds: a launcher that is stopped there meets a kill that has done its work.
for ((i = 0; i < 30 && met == 0; i++)); do
  start >"$work/start.out" 2>"$work/start.err" </dev/null &
  starting=$! started=0
  for ((tries = 0; tries < 3000; tries++)); do
    compgen -G "$HOME/.dtool/killfiles/*.killfile" >/dev/null && break
    read -rt 0.003 <> <(:) || true
  done
  kill -STOP "$starting" 2>/dev/null || true  # it may have ended
  run dtool kill --all --yes --delete --grace 0.2
  killed=$code
  kill -CONT "$starting" 2>/dev/null || true
  wait "$starting" || started=$?
  judge
done
((met > 0)) || fail 'the test does not test: no start met a kill'

# Two at once.
for what in one all; do
  for ((i = 0; i < 2; i++)); do
    (start) >/dev/null 2>&1
    [[ $what == one ]] || { (start) >/dev/null 2>&1; }
    names=(--all)
    [[ $what == all ]] || names=("$(basename "$(killfiles)" .killfile)")
    for each in 1 2; do
      timeout 60 "$DTOOL" kill --yes --delete --grace 0.2 "${names[@]}" >"$work/kill$each" 2>&1 </dev/null &
      killing[each]=$!
    done
    for each in 1 2; do
      code=0
      wait "${killing[each]}" || code=$?
      [[ $code == 0 ]] && grep -q 'none is left' "$work/kill$each" || { [[ $code == 2 ]] && grep -Eq "no run .*is recorded" "$work/kill$each"; } ||
        fail "a kill beside another ended with $code: $(cat "$work/kill$each")"
    done
    nothing_is_left
  done
done

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Launchers that start runs on the same hosts from the same folder at the same moment take turns in sending it, and each run has its own
# id, port, log and outputs. Of two trees that are sent to one folder at once each is sent whole or refused: there is no mixture.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3

# shellcheck disable=SC2016
job='cat file* | sha256sum; ls extra*; echo "$MASTER_PORT $DTOOL_RUN_ID"'
for round in 1 2 3; do
  rm -f file* extra*
  for ((i = 0; i < 100; i++)); do echo "$round $RANDOM" >file$i; done
  echo $round >extra$round
  wanted=$(cat file* | sha256sum) launchers=()
  for each in 1 2 3; do
    timeout 100 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" --extra_tag "$round-$each" -- bash -c "$job" >"$work/out$each" 2>"$work/err$each" </dev/null &
    launchers+=("$!")
  done
  for each in 1 2 3; do
    code=0
    wait "${launchers[each - 1]}" || code=$?
    [[ $code == 0 ]] || fail "launcher $each ended with $code: $(cat "$work/err$each")"
    expect_equal 3 "$(grep -cF ": $wanted" "$work/out$each")"
    expect_equal 3 "$(grep -c ": extra$round$" "$work/out$each")"
    expect_equal 3 "$(grep -c ": [0-9]* bash_$round-${each}_" "$work/out$each")"
  done
  expect_equal 3 "$(sed -n 's/^machine0: \([0-9]*\) bash_.*/\1/p' "$work"/out? | sort -u | wc -l)"
done
expect_equal 9 "$(dtool list --json 2>/dev/null | grep -c '"run_id"')"
expect_exit 0 dtool kill --all --yes --delete

# Two folders that are called alike, to one host, where the second of two always comes through.
for tree in red blue; do
  mkdir -p "$work/$tree/code"
  for ((i = 0; i < 50; i++)); do echo $tree >"$work/$tree/code/file$i"; done
  echo $tree >"$work/$tree/code/$tree"
done
whole=0
for round in 1 2 3 4; do
  launchers=()
  for tree in red blue; do
    echo "$tree $round" >"$work/$tree/code/file0"
    (cd "$work/$tree/code" && exec timeout 100 "$DTOOL" run --quiet --runs_on h1 -- true >"$work/$tree.out" 2>"$work/$tree.err" </dev/null) &
    launchers+=("$!")
  done
  for place in 0 1; do
    tree=$(cut -d' ' -f$((place + 1)) <<<'red blue') code=0
    wait "${launchers[place]}" || code=$?
    case $code in
      0) ((++whole)) ;;
      2) grep -q 'another dtool is sending another tree there' "$work/$tree.err" || fail "$tree was not sent: $(cat "$work/$tree.err")" ;;
      *) fail "$tree ended with $code: $(cat "$work/$tree.err")" ;;
    esac
  done
  expect_equal 1 "$(on h1 sh -c 'cat code/file[1-9]* | sort -u | wc -l')"
done
((whole >= 4)) || fail "only $whole of 8 trees were sent"
expect_exit 0 dtool kill --all --yes --delete

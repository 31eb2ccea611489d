#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# On a terminal of 80 columns no line of a table or a sentence is longer, with long names of runs and wide characters in what a program prints.
source "$(dirname "$0")/harness.sh"
needs_program script

at_end 'dtool kill --all --delete >"$work/killed" 2>&1 || true'
wide=$(printf '日本語%.0s' {1..30})
expect_exit 0 dtool run --extra_tag a_tag_that_a_user_makes_rather_long_too --no_sync -- bash -c "echo $wide; sleep 600"
expect_exit 0 dtool run --extra_tag short --no_sync -- bash -c "echo $wide; sleep 600"

# $1: dtool's words, whose table goes to a terminal. Fails of lines that are too long, unless a single word is.
fits() {
  script -qec "stty cols 80 rows 24; '$DTOOL' $1 2>'$work/said'" /dev/null </dev/null >"$work/table" || true
  fits_80
}
fits_80() {
  expect_equal '' "$(python3 - "$work/table" <<'END'
import re, sys, unicodedata
lines = open(sys.argv[1], encoding='utf-8').read().split('\n')
for line in lines:
    line = re.sub(r'\x1b\[[0-9;?]*[A-Za-z]', '', line).rstrip('\r')
    if sum(2 if unicodedata.east_asian_width(c) in 'WF' else 1 for c in line) > 80 and len(line.split()) > 1:
        print(line)
if len(lines) < 3:
    print('no table:', lines)
END
)"
}
eventually 20 eval "dtool status short | grep -q 日本語"
fits 'status short'
grep -q 日本 "$work/table" || fail "the row lacks the last line: $(cat "$work/table")"
fits list
fits 'list --state'
fits 'check --runs_on local'

# What does not fit beside a name goes on below its beginning, and long values of two runs stand below each other.
for rate in 0.001 0.002; do
  expect_exit 0 dtool run --extra_tag rate$rate --no_sync --follow -- true --learning_rate $rate --weight_decay 0.0001 --optimizer adam --epochs 300
done
fits 'show rate0.001'
sed -n '/command /{n;p;}' "$work/table" | grep -qE '^ {12}[^ ]' || fail "the row does not go on below its value: $(cat "$work/table")"
fits 'diff rate0.001 rate0.002'
expect_equal $'  program  from true --learning_rate 0.001\n           to   true --learning_rate 0.002' "$(grep -oE '^.*true --learning_rate 0.00[12]' "$work/table")"
fits 'run --dry_run --no_sync --extra_tag a_tag_that_a_user_makes_rather_long_too -- true'

# Questions break at blanks as well, and so does what stands above a run's table.
answered() {
  script -qec "stty cols 80 rows 24; '$DTOOL' $1" /dev/null <<<"$2" | sed 's,\[y/N\] ,&\n,g' >"$work/table" || true
  fits_80
}
answered 'kill' $'n\nn'
grep -q 'end bash_a_tag_that_a_user_makes_rather_long_' "$work/table" || fail "no question: $(cat "$work/table")"
answered 'kill short' n
grep -q 'its outputs stay on' "$work/table" || fail "no question: $(cat "$work/table")"
fits 'status short'

# Sentences break at blanks, and stay one line where no terminal reads them.
script -qec "stty cols 80 rows 24; '$DTOOL' status nothing_that_is_recorded --color never" /dev/null </dev/null | tr -d '\r' >"$work/said" || true
grep -q '^       ' "$work/said" || fail "the sentence does not go on below its beginning: $(cat "$work/said")"
grep -q '^hint: these runs are recorded:' "$work/said" || fail "no hint: $(cat "$work/said")"
expect_equal '' "$(grep -E '.{81}' "$work/said" || true)"
expect_exit 2 dtool status nothing_that_is_recorded
expect_equal 2 "$(wc -l <"$err")"

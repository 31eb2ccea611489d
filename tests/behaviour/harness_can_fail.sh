#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A failing expectation fails its test and says what happened; a skip says why; nothing of a lab outlives either.
source "$(dirname "$0")/harness.sh"

# A test of one line, in its own process.
a_test_of() {
  printf 'source %q\n%s\n' "$here/harness.sh" "$1" >"$work/inner.sh"
  bash "$work/inner.sh"
}

# Passing expectations pass.
expect_exit 0 a_test_of 'expect_exit 3 sh -c "echo some words; echo other words >&2; exit 3"
  expect_output "^some w"; expect_no_output nothing; expect_error other; expect_no_error some
  sh -c "exit 4" & expect_ended 4 $!
  expect_equal a a; expect_file "$work"; expect_no_file "$work/none"; expect_no_process_with none-such; eventually 1 true'

# Each expectation can fail.
expect_exit 1 a_test_of 'expect_exit 0 sh -c "echo some words; exit 3"'
expect_error 'FAILED inner, line 2: exit code 3, not 0'
expect_error 'its exit code: 3'
expect_error '[|] some words'
for failing in 'expect_exit 0 echo a; expect_output b' 'expect_exit 0 echo a; expect_no_output a' 'expect_exit 0 echo a; expect_error a' \
  'expect_exit 0 sh -c "echo a >&2"; expect_no_error a' 'expect_equal a b' 'true & expect_ended 4 $!' 'expect_file none' 'expect_no_file "$work"' \
  'DTOOL_RUN_ID=harness-$$ sleep 5 & eventually 20 expect_process_with harness-$$; expect_no_process_with harness-$$' 'expect_process_with none-such' \
  'eventually 0 false' 'eventually 0 expect_equal a b' 'DTOOL=/none; dtool --version'; do
  expect_exit 1 a_test_of "$failing"
  expect_error 'FAILED inner, line 2'
done

# A command without an expectation can fail a test, and so can an expectation inside a function.
expect_exit 1 a_test_of 'false; true'
expect_error 'this failed: false'
expect_exit 1 a_test_of 'check() { expect_equal 1 2; }; check; true'

# Commands at the end of a test do not change its verdict.
expect_exit 1 a_test_of 'at_end "echo the end; true"; expect_equal 1 2'
expect_output '^the end$'

expect_exit 77 a_test_of 'skip "no reason at all"'
expect_output 'SKIPPED inner: no reason at all'
expect_exit 77 env -u CI bash -c "source '$here/harness.sh'; needs_program no-such-program"
expect_exit 1 env CI=true bash -c "source '$here/harness.sh'; needs_program no-such-program"

# A test that fails leaves no lab.
expect_exit 1 a_test_of 'lab 2; echo "$DTOOL_LAB" >'"$work/name"'; fail "on purpose"'
"$here/../lab" list >"$work/labs"
expect_equal 0 "$(grep -c "^$(cat "$work/name") " "$work/labs" || true)"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every command of docs/tutorial.md works as it stands there, pasted one after the other.
source "$(dirname "$0")/harness.sh"
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'needs dtool-trainer'
built=$(dirname "$DTOOL")

# The page's lab is called after the test and ends with it, and the build may lie elsewhere.
export DTOOL_LAB=$test_name-$$
sed -n '/^```bash$/,/^```$/p' "$source_folder/docs/tutorial.md" | grep -v '^```' |
  sed "s,\$PWD/build,$built,; s,tests/lab up 3 --share build,tests/lab up 3 --owner $$ --share $built," >"$work/commands"
[[ $(wc -l <"$work/commands") -ge 40 ]] || fail "the commands of docs/tutorial.md were not found"

cd "$source_folder"
expect_exit 0 bash -euxo pipefail "$work/commands"
expect_error '^added 3 keys to '
expect_error '^3 of 3 hosts set up'
expect_output '^machine0: test accuracy 0\.9'
expect_error '^h\[1-3\]  sent 2 of 2 files and folders, 3\.9 kB, into '
expect_error '^digits_.*: ended on h\[1-3\]$'
expect_output '^machine0: validation success [01]\.[0-9]+'
expect_error '^objectnav_rooms_short_.*: ended on h\[1-3\]$'
expect_output '^machine2: rank 2 of 3 meets the others at '
expect_error '^wide_long_.*: started on h\[1-3\]; 3 processes'
expect_output '^attempt 2 of 2$'
killed='rank 1 on machine 1 \(h2\) was killed by signal 9 \(KILL\)'
expect_output "^attempt 1 failed: $killed"
expect_output "^rank 1 on machine1 failed first in attempt 1: $killed"
expect_error '^wide_long_.*: [1-9][0-9]* processes ended on h\[1-3\]; none is left$'
expect_error '^wide_again_.*: started on h\[1-2\]; 2 processes'
expect_output '^h3$'
expect_output '^Host wide_long_.*\.2$'
expect_output '^h1 +dtool_host '
expect_output "^lab $DTOOL_LAB: down"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A file that is mostly holes takes as little of a disk there as here: as code, in the run's own tree, passed on by hosts, copied, and back again.
# shellcheck disable=SC2088  # the hosts' tildes
source "$(dirname "$0")/harness.sh"
lab 3
mkdir code
cd code
printf begin >sparse
truncate -s 60M sparse
printf middle | dd of=sparse bs=1M seek=30 conv=notrunc status=none
expect_small() { (($(du -sk "$1" | cut -f 1) < 3000)) || fail "$1 takes $(du -sk "$1" | cut -f 1) kB"; }
there() { find "$DTOOL_LAB_FOLDER/host$1/root" -name sparse -type f ! -path '*.copy/*'; }
expect_everywhere() {
  local host file
  for host in 1 2 3; do
    (($(there "$host" | wc -l) == $1)) || fail "host $host has $(there "$host")"
    while IFS= read -r file; do
      expect_small "$file"
      cmp sparse "$file"
    done < <(there "$host")
  done
}
expect_small sparse

# The program gives it back as an output.
expect_exit 0 dtool run --json --follow --runs_on "$DTOOL_LAB_HOSTS" -- sh -c 'cp --sparse=always sparse "$DTOOL_OUTPUT_DIR/sparse_output"'
id=$(json 'd["run_id"]')
expect_everywhere 2
expect_exit 0 dtool fetch "$id" ../fetched
expect_small ../fetched/machine1/sparse_output
cmp sparse ../fetched/machine1/sparse_output

# By way of other hosts, into another folder; as a copy; and a copy back.
expect_exit 0 dtool run --follow --relay --code_path '~/relayed' --runs_on "$DTOOL_LAB_HOSTS" -- true
expect_everywhere 4
expect_exit 0 dtool copy --runs_on "$DTOOL_LAB_HOSTS" sparse '~/copied/'
expect_everywhere 5
expect_exit 0 dtool copy --from "${DTOOL_LAB_HOSTS%%,*}" '~/copied/sparse' ../back
expect_small ../back
cmp sparse "$(find ../back -type f -name sparse)"

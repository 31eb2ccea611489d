#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hosts with the programs of other systems are checked, set up, run, watched and ended as Debian 12's are. DTOOL_LAB_ROOTS is a
# folder with their files, made by tests/lab.d/make_root; DTOOL_BASHES one with other versions of bash that dtool serves, which
# hosts get for theirs. Without either, Debian 11's and 13's are fetched.
# shellcheck disable=SC2153
source "$(dirname "$0")/harness.sh"
needs_isolation
if [[ -z ${DTOOL_LAB_ROOTS:-}${DTOOL_BASHES:-} ]]; then
  needs_program mmdebstrap
  mkdir "$work/roots"
  for release in bullseye trixie; do
    system_root "$release"
    ln -s "$REPLY" "$work/roots/$release"
  done
  DTOOL_LAB_ROOTS=$work/roots
fi
flags=() bashes=() count=0
for root in ${DTOOL_LAB_ROOTS:+"$DTOOL_LAB_ROOTS"/*/}; do flags+=(--root "$((++count))=$root"); done
for bash in ${DTOOL_BASHES:+"$DTOOL_BASHES"/*}; do bashes[++count]=$bash; done
lab "$count" "${flags[@]}"
for host in "${!bashes[@]}"; do
  mkdir -p "$DTOOL_LAB_FOLDER/host$host/root/bin"
  cp "${bashes[host]}" "$DTOOL_LAB_FOLDER/host$host/root/bin/bash"
  # shellcheck disable=SC2016
  echo 'PATH=/root/bin:$PATH' >"$DTOOL_LAB_FOLDER/host$host/root/.bashrc"
done

expect_exit 0 dtool check --runs_on "$DTOOL_LAB_HOSTS" --no_trainer
expect_no_output '^[^ ]* +x '
expect_exit 0 dtool command --runs_on "$DTOOL_LAB_HOSTS" --command 'echo "it is $(bash -c "echo \$BASH_VERSION")"'
expect_equal "$count" "$(grep -c 'it is ' "$out")"
cat "$out"
echo 'echo "set up"' >set_up.sh
expect_exit 0 dtool config --runs_on "$DTOOL_LAB_HOSTS" --config_script set_up.sh --follow

mkdir code
cd code
for ((i = 0; i < 2100; i++)); do echo "$i" >"file $i"; done  # as many as go to find by a file of names
cat >train.sh <<'END'
trap 'echo told to end; exit 7' TERM
echo "files $(ls | wc -l), rank $RANK of $WORLD_SIZE"
until [ -e "$DTOOL_CODE_DIR/stop" ]; do sleep 0.2; done
exit 3
END
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" --nproc_per_node 2 -- bash train.sh
id=$(json 'd["run_id"]')
all_have_begun() { expect_exit 0 dtool logs "$id" && expect_equal $((2 * count)) "$(grep -c "files 2102, rank [0-9]* of $((2 * count))$" "$out")"; }
eventually 30 all_have_begun
expect_exit 0 dtool status "$id" --json
expect_equal "$count" "$(json 'sum(m["state"] == "running" for m in d["machines"])')"
# The failure of one ends the others, and is told by all.
on "$count" touch code/stop
is_over() { expect_exit 1 dtool status "$id" && expect_output 'exit code 3'; }
eventually 60 is_over
eventually 20 expect_no_process_with "$id"

# A changed tree: what went is deleted, what came is there.
rm 'file 1'
echo new >'new file'
expect_exit 0 dtool run --json --runs_on "$DTOOL_LAB_HOSTS" -- bash -c 'rm -f stop; setsid sleep 1000 & sleep 1000'
id=$(json 'd["run_id"]')
for ((i = 1; i <= count; i++)); do
  expect_equal 'file 2,new file' "$(on "$i" sh -c 'cd code && ls "file 1" "file 2" "new file" 2>/dev/null || true' | paste -sd,)"
done
expect_exit 0 dtool kill --yes --delete "$id"
expect_error 'none is left'
expect_no_process_with "$id"

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What --env_file and --export give reaches the programs under every launcher and in a container, and stands in no process's
# arguments, in no killfile or trace, in nothing that dtool shows, and in no file that others can read. A trace has no token either.
# shellcheck disable=SC2016,SC2088  # it is for the hosts to expand
source "$(dirname "$0")/harness.sh"
source "$here/container_image.sh"
needs_isolation
needs_program ch-run
needs_program busybox
needs_program mpirun
lab 2
let_h1_reach_the_others
# An image with variables of its own; ch-run's arguments are kept, which are there for a moment only.
for i in 1 2; do
  root=$DTOOL_LAB_FOLDER/host$i/root
  make_image "$root/image"
  mkdir -p "$root/image/ch" "$root/bin"
  printf 'TOKEN=of the image\n' >"$root/image/ch/environment"
  printf '#!/bin/bash\nprintf "%%s\\n" "$@" >>/root/arguments\nexec %q "$@"\n' "$(command -v ch-run)" >"$root/bin/ch-run"
  chmod +x "$root/bin/ch-run"
done

secret="s3cret-$$ it's \"#\$HOME"
printf '%s' "s3cret-$$" >"$work/needle"
printf '# for the run\n\nTOKEN="%s"\r\n' "$secret" >"$work/env"
cat >program.sh <<'S'
printf '%s|%s' "$TOKEN" "$OTHER" > "$DTOOL_OUTPUT_DIR/said.$DTOOL_MACHINE_ID"
echo started
exec sleep 1000
S

# Whose arguments hold it. This test's own processes have it in no argument.
shows_in_arguments() { { grep -alFf "$work/needle" /proc/[0-9]*/cmdline 2>/dev/null || true; } | while IFS= read -r file; do tr "\0" " " <"$file" 2>/dev/null || true; echo; done; }
said_everywhere() {
  local i
  for i in 1 2; do [[ $(cat "$DTOOL_LAB_FOLDER/host$i/root/here/experiment_output/$id/said.$((i - 1))") == "$secret|with a line
end $$" ]] || return 1; done
}
# run_with ARGS...: a run whose programs got the values, and nobody else.
run_with() {
  export OTHER="with a line
end $$"
  rm -rf "$work/trace"
  expect_exit 0 dtool run --json --trace "$work/trace" --runs_on h1,h2 "$@" --env_file "$work/env" --export OTHER -- /bin/sh program.sh
  expect_nowhere
  expect_in_no_trace -Ff "$work/needle"
  id=$(json "d['run_id']")
  unset OTHER
  eventually 30 said_everywhere
  expect_equal '' "$(shows_in_arguments)"
  ! grep -rqFf "$work/needle" "$HOME/.dtool" || fail "in ~/.dtool: $(grep -rlFf "$work/needle" "$HOME/.dtool")"
  for words in 'list --json' 'status --json' logs; do
    # shellcheck disable=SC2086
    expect_exit 0 dtool $words
    expect_nowhere
  done
  local file
  while IFS= read -r file; do
    expect_equal "600 $file" "$(stat -c '%a %n' "$file")"
    expect_equal 700 "$(stat -c %a "${file%/*}")"
  done < <(grep -rlFf "$work/needle" "$DTOOL_LAB_FOLDER"/host[12]/root/.dtool)
  cat "$DTOOL_LAB_FOLDER/host1/root/.dtool/runs/$id/machine0/token" >"$work/token"
  [[ $(wc -c <"$work/token") -ge 32 ]] || fail 'no token was found: the test tests nothing'
  expect_in_no_trace -Ff "$work/token"
  expect_exit 0 dtool kill "$id" --delete
}
expect_in_no_trace() {
  [[ -n $(ls "$work/trace") ]] || fail 'there is no trace: the test tests nothing'
  ! grep -rq "$@" "$work/trace" || fail "in a trace: $(grep -rl "$@" "$work/trace")"
}
expect_nowhere() { ! cat "$out" "$err" | grep -qFf "$work/needle" || fail 'the value is shown'; }

run_with
run_with --container '~/image' --export PATH=/root/bin:/usr/bin:/bin
for i in 1 2; do
  grep -qx -e --set-env "$DTOOL_LAB_FOLDER/host$i/root/arguments" || fail 'the image has no variables: the test tests nothing'
  ! grep -qFf "$work/needle" "$DTOOL_LAB_FOLDER/host$i/root/arguments" || fail "ch-run is given the value as an argument"
done
run_with --launcher mpi

# Given in the command line, it is not recorded either; what stands behind -- is the program's.
expect_exit 0 dtool run --json --runs_on h1 --export "TOKEN=$secret" --export="T2=$secret" -- sleep 1000
id=$(json "d['run_id']")
expect_nowhere
! grep -qFf "$work/needle" "$HOME/.dtool/killfiles/$id.killfile" || fail 'the killfile has the value'
grep -qF 'TOKEN=…' "$HOME/.dtool/killfiles/$id.killfile" || fail 'the killfile has no trace of the variable'
expect_equal '' "$(shows_in_arguments)"
expect_exit 0 dtool kill "$id" --delete
for json in '' --json; do
  expect_exit 0 dtool run --dry_run $json --runs_on h1 --env_file "$work/env" --export "T2=$secret" -- sleep 1
  expect_nowhere
done
expect_exit 0 dtool run --dry_run --runs_on h1 --env_file "$work/env" -- sleep 1
expect_output 'exports +TOKEN=…'

# A bad line is named, without what stands in it.
for line in "$secret" "1A=$secret" "set A=$secret" "DTOOL_SEED=$secret" "A='$secret"; do
  printf 'B=1\n%s\n' "$line" >"$work/bad"
  expect_exit 2 dtool run --runs_on h1 --env_file "$work/bad" -- sleep 1000
  expect_error "^dtool: $work/bad:2: "
  expect_nowhere
done
expect_exit 2 dtool run --runs_on h1 --env_file "$work/none" -- sleep 1000
expect_error "$work/none"

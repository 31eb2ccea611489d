#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With --outdir each host's output goes into files of its own as it comes, in bounded memory, and nowhere else; what cannot be
# written is told, before anything runs where that shows then.
source "$(dirname "$0")/harness.sh"
needs_program jq
lab 2

# Both streams, any bytes; a folder is made; files of an earlier command are replaced, and links are not followed.
# shellcheck disable=SC2016
expect_exit 0 dtool command --outdir a/b --runs_on "h1,$log_in_user@h2" --command 'printf "out\0\377 $(hostname)"; echo complaint >&2'
expect_equal '' "$(cat "$out")"
expect_equal 'the output is in a/b' "$(cat "$err")"
expect_equal "$log_in_user@h2.err $log_in_user@h2.out h1.err h1.out" "$(cd a/b && echo *)"
expect_equal complaint "$(cat "a/b/$log_in_user@h2.err")"
LC_ALL=C grep -qaP '^out\x00\xff lab-.*-1$' a/b/h1.out || fail "$(od -c a/b/h1.out)"
echo kept >elsewhere
ln -sf ../../elsewhere a/b/h1.out
expect_exit 1 dtool command --json --outdir a/b --runs_on h1,none.invalid --command 'echo again'
expect_equal '' "$(cat "$err")"
expect_equal 'a/b/h1.out a/b/h1.err null' "$(jq -r '.hosts[0] | "\(.stdout_file) \(.stderr_file) \(.stdout)"' "$out")"
expect_equal again "$(cat "$(jq -r '.hosts[0].stdout_file' "$out")")"
expect_equal '' "$(cat a/b/h1.err a/b/none.invalid.out)"
expect_equal kept "$(cat elsewhere)"

# As it comes.
"$DTOOL" command --quiet --outdir live --runs_on h1 --command 'echo first; until [ -e go ]; do sleep 0.1; done; echo last' >"$out" 2>"$err" &
pid=$!
eventually 20 grep -qx first live/h1.out
on h1 touch go
expect_ended 0 $pid 'dtool command --outdir'
expect_equal $'first\nlast' "$(cat live/h1.out)"
expect_equal '' "$(cat "$out" "$err")"

# What cannot be written.
touch a_file
expect_exit 2 dtool command --outdir a_file --runs_on h1 --command 'touch began'
expect_error '^dtool: --outdir a_file: '
expect_error '^hint: --outdir names a folder'
mkdir -p taken/h1.out
expect_exit 2 dtool command --outdir taken --runs_on h1 --command 'touch began'
expect_error '^dtool: --outdir taken/h1.out: '
expect_exit 2 dtool command --outdir "" --runs_on h1 --command 'touch began'
expect_exit 2 dtool command --outdir x --fold --runs_on h1 --command 'touch began'
expect_exit 2 dtool command --outdir x --runs_on 'fe80::1%/../../x' --command 'touch began'
expect_error 'no file can be named '
expect_exit 1 on h1 test -e began
if [[ $("$here/../lab" mode) == isolated ]]; then
  mkdir small
  mount -t tmpfs -o size=64k tmpfs small
  at_end "umount '$PWD/small'"
  expect_exit 1 dtool command --outdir small --runs_on h1,h2 --command 'case $(hostname) in lab-*-1) head -c 1000000 /dev/zero ;; esac'
  expect_error "^  h1: its output cannot be written to small/h1.out: No space left on device"
  expect_error '^dtool: 1 of 2 hosts failed'
fi

# Much of it.
much='seq -f "%015.0f" 3276800'
"$DTOOL" command --outdir much --runs_on h1,h2 --command "$much" >"$out" 2>"$err" &
pid=$!
peak=0
while size=$(awk '/VmHWM/ { print $2 }' "/proc/$pid/status" 2>/dev/null) && [[ -n $size ]]; do
  peak=$size
  sleep 0.05
done
expect_ended 0 $pid 'dtool command --outdir'
wanted=$(bash -c "$much" | sha256sum)
for host in h1 h2; do expect_equal "$wanted" "$(sha256sum <much/$host.out)"; done
((peak > 0 && peak < 50000)) || fail "dtool took $peak kB of memory"

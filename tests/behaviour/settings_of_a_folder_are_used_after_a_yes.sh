#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A dtool.toml that came with a folder has no say about runs that were recorded elsewhere; for new ones, what it decides about hosts
# and programs is used after it was accepted by content. Git runs no program that the folder names either.
source "$(dirname "$0")/harness.sh"
needs_program script
needs_program git
lab 2

second=$(sed -n 2p "$DTOOL_LAB_FOLDER/hosts")
mkdir "$work/cloned"
# A folder of somebody else's: h1 is another machine there, whose key it knows.
printf 'Host h1\n  HostName %s\n  HostKeyAlias h2\n' "$second" | cat - "$HOME/.ssh/config" >"$work/cloned/ssh_config"
printf '[ssh]\nconfig_file = "%s"\n' "$work/cloned/ssh_config" >"$work/cloned/dtool.toml"

echo code >file
expect_exit 0 dtool run --runs_on h1 --extra_tag elsewhere -- sleep 1000
run_id=$(ls "$HOME/.dtool/killfiles")
run_id=${run_id%.killfile}
expect_exit 0 dtool disconnect
cd "$work/cloned"

# The recorded run is where it was recorded.
expect_exit 0 dtool status
expect_output 'running on 1 of 1 machine'
expect_exit 0 dtool list --state
expect_output 'running'
expect_exit 2 dtool command --runs_on h1 --command hostname
expect_error "^dtool: $work/cloned/dtool.toml decides whom dtool reaches or what runs, and you have not accepted it: ssh.config_file$"
expect_error '^hint: dtool trust --settings'
for words in 'run --runs_on h1 -- true' 'check --runs_on h1' 'trust --runs_on h1' 'config --runs_on h1 --distribute_public_key'; do
  # shellcheck disable=SC2086
  expect_exit 2 dtool $words
  expect_error 'you have not accepted it'
done
# Accepted, it holds for what is new, and still not for the run.
expect_exit 0 dtool trust --settings --yes
expect_exit 0 dtool command --runs_on h1 --command hostname
expect_output '^h1: lab-.*-2$'
expect_exit 0 dtool command --yes --command hostname
expect_output '^h1: lab-.*-1$'
expect_exit 0 dtool status
expect_output 'running on 1 of 1 machine'
expect_exit 0 dtool kill "$run_id" --delete
expect_no_process_with "$run_id"

# A mistake in it stops no command about recorded runs.
printf 'nonsense' >dtool.toml
expect_exit 0 dtool list
expect_exit 2 dtool command --runs_on h1 --command hostname

# What is harmless needs nobody's yes; every other key does.
printf '[ssh]\nconnect_timeout = 5\nwidth = 4\n[run]\noutput_dir = "o"\nnproc_per_node = 2\nexclude = ["x"]\nrelay = false\n' >dtool.toml
expect_exit 0 dtool command --runs_on h1 --command hostname
expect_exit 0 dtool trust --settings
for key in 'runs_on = "h1"' $'[groups]\na = "h1"' $'[connections]\nkeep = 1' $'[run]\ncode_path = "~/x"' $'[run]\nenv_activate_path = "x"' \
  $'[run]\nmodules = "x"' $'[run]\ncontainer = "x"' $'[run]\ncontainer_engine = "podman"' $'[run]\nbind = ["/x"]' $'[environment]\nLD_PRELOAD = "x"'; do
  printf '%s\n' "$key" >dtool.toml
  expect_exit 2 dtool command --runs_on h1 --command hostname
  expect_error 'you have not accepted it'
done

# Shown, asked, accepted by content and place.
printf 'runs_on = "h2"\n' >dtool.toml
expect_exit 1 dtool trust --settings
expect_error 'runs_on = "h2"'
expect_error '^hint: --yes'
expect_exit 1 dtool trust --settings --json
expect_equal "False ['runs_on']" "$(json 'str(d["accepted"]) + " " + str(d["keys"])')"
expect_exit 2 dtool command --command hostname
{ sleep 0.7; echo n; sleep 2; } | timeout 60 script -qec "$(printf '%q ' "$DTOOL" trust --settings)" /dev/null >"$out" || true
expect_output 'not accepted'
expect_exit 2 dtool command --command hostname
{ sleep 0.7; echo y; sleep 2; } | timeout 60 script -qec "$(printf '%q ' "$DTOOL" trust --settings)" /dev/null >"$out"
expect_output 'accepted, until it changes'
expect_exit 0 dtool command --command hostname
expect_output '^h2: '
expect_equal '600 700' "$(stat -c %a "$HOME"/.dtool/accepted_settings/*) $(stat -c %a "$HOME/.dtool/accepted_settings")"
mkdir other
cp dtool.toml other
cd other
expect_exit 2 dtool command --command hostname
cd ..
printf '#\n' >>dtool.toml
expect_exit 2 dtool command --command hostname
expect_exit 0 dtool trust --settings --yes
expect_exit 0 dtool command --command hostname
rm dtool.toml
expect_exit 2 dtool trust --settings
expect_error 'there is no dtool.toml in '

# Git of a folder that came with its own configuration.
git init -q .
printf '#!/bin/sh\ntouch %q\n' "$work/was_run" >monitor
chmod +x monitor
git config core.fsmonitor "$PWD/monitor"
git add monitor
[[ -e $work/was_run ]] || fail 'git itself does not run the monitor: the test tests nothing'
rm "$work/was_run"
git config core.fsmonitor false
printf '#!/bin/sh\ntouch %q\nexec cat\n' "$work/was_run" >filter
chmod +x filter
git config filter.own.clean "$PWD/filter"
echo '* filter=own' >.gitattributes
git add .
[[ -e $work/was_run ]] || fail 'git itself does not run the filter: the test tests nothing'
git -c user.name=a -c user.email=a@b commit -qm all
touch monitor
rm "$work/was_run"
git config core.fsmonitor "$PWD/monitor"
expect_exit 0 dtool run --runs_on h1 --follow -- true
expect_no_file "$work/was_run"

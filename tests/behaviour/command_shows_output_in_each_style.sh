#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Streamed, --fold, --json, --quiet and --color show the same answers; the exit code says how it went.
source "$(dirname "$0")/harness.sh"
needs_program jq
needs_program script
lab 4

on_terminal() { timeout 60 script -qec "$(printf '%q ' "$@")" /dev/null; }

expect_exit 0 dtool command --runs_on 'h[1-4]' --command 'echo one; echo two'
expect_equal 8 "$(grep -cE '^h[1-4]: (one|two)$' "$out")"
expect_equal '' "$(cat "$err")"

# The words after -- arrive as they are; one word is a command line, and --shell makes one of several.
expect_exit 0 dtool command -w 'h[1-2]' -- uptime -p
expect_equal 2 "$(grep -cE '^h[12]: up' "$out")"
expect_exit 0 dtool command -w 'h[1-2]' -x h2 -- printf '%s\n' 'a  b' '$HOME' "it's"
expect_equal $'h1: a  b\nh1: $HOME\nh1: it\'s' "$(cat "$out")"
expect_exit 0 dtool command -w h1 -- 'echo one | tr o 0'
expect_equal 'h1: 0ne' "$(cat "$out")"
expect_exit 0 dtool command -w h1 --shell -- echo one '|' tr o 0
expect_equal 'h1: 0ne' "$(cat "$out")"

# Identical outputs once, whatever order the hosts answered in.
expect_exit 0 dtool command --fold --runs_on 'h[1-4]' --command 'case $(hostname) in *-3) echo other ;; *) echo same ;; esac'
expect_equal $'--------------------\nh[1-2,4] (3)\n--------------------\nsame\n--------------------\nh3\n--------------------\nother' "$(cat "$out")"
expect_exit 1 dtool command --fold --runs_on 'h[1-2],none.invalid' --command 'echo same; exit 3'
expect_output '^h\[1-2\] \(2\)$'
expect_error '^dtool: 3 of 3 hosts failed: echo same; exit 3$'
expect_error '^  h\[1-2\]: exit code 3$'
expect_error '^  none.invalid: cannot resolve'

# The command's own exit code, where it is wanted.
expect_exit 3 dtool command --exit_code remote --runs_on 'h[1-2]' --command 'exit 3'
expect_exit 1 dtool command --exit_code remote --runs_on 'h[1-2]' --command 'case $(hostname) in *-1) exit 3 ;; esac'
expect_exit 3 dtool command --exit_code max --runs_on 'h[1-2]' --command 'case $(hostname) in *-1) exit 3 ;; esac'
expect_exit 255 dtool command --exit_code max --runs_on h1,none.invalid --command 'exit 3'
expect_exit 2 dtool command --exit_code least --runs_on h1 --command 'exit 3'
expect_error "^dtool: --exit_code: 'least' is not one of remote, max"

# One document, of all that happened.
expect_exit 1 dtool command --json --runs_on h1,none.invalid --command 'echo words; echo complaint >&2; exit 3'
expect_equal '' "$(cat "$err")"
expect_equal '{"command":"echo words; echo complaint >&2; exit 3","exit_code":1}' "$(jq -c 'del(.hosts)' "$out")"
expect_equal '{"exit_code":3,"failure":"none","host":"h1","stderr":"complaint\n","stdout":"words\n"}' "$(jq -cS '.hosts[0] | del(.elapsed_s)' "$out")"
expect_equal unreachable "$(jq -r '.hosts[1].failure' "$out")"
expect_output '"hint": '

# Without a command, the GPUs.
own=$DTOOL_LAB_FOLDER/host1/root/bin
mkdir "$own"
# shellcheck disable=SC2016
echo 'PATH=$HOME/bin:$PATH' >"$DTOOL_LAB_FOLDER/host1/root/.bashrc"
printf '#!/bin/sh\nseq 100000\n' >"$own/nvidia-smi"
chmod +x "$own/nvidia-smi"
expect_exit 0 dtool command --runs_on h1
expect_equal 35 "$(wc -l <"$out")"
# A driver that does not work, and none at all, are failures.
printf '#!/bin/sh\necho "has failed because it could not talk to the driver"\nexit 9\n' >"$own/nvidia-smi"
expect_exit 1 dtool command --runs_on h1
expect_output '^h1: has failed because'
expect_error 'exit code 9$'
if ! command -v nvidia-smi >/dev/null; then
  expect_exit 1 dtool command --runs_on h1,h2
  expect_error '^  h2: there is no nvidia-smi'
  expect_error 'hint: it goes after --: dtool command -- uptime'
fi

# Colours and progress are for terminals.
expect_exit 0 env TERM=xterm bash -c "$(declare -f on_terminal); on_terminal '$DTOOL' command --runs_on h1,h2 --command 'echo hi'"
expect_output $'\e\[34mh1:\e\[0m hi'
expect_output '1 of 2 hosts'
expect_exit 0 env TERM=xterm NO_COLOR=1 bash -c "$(declare -f on_terminal); on_terminal '$DTOOL' command --runs_on h1 --command 'echo hi'"
expect_no_output $'\e\[34m'
expect_exit 0 env TERM=dumb bash -c "$(declare -f on_terminal); on_terminal '$DTOOL' command --color never --runs_on h1 --command 'echo hi'"
expect_no_output $'\e\[34m'
expect_exit 0 env TERM=xterm bash -c "$(declare -f on_terminal); on_terminal '$DTOOL' command --quiet --runs_on h1,h2 --command 'echo hi'"
expect_no_output '1 of 2 hosts'
expect_exit 0 env NO_COLOR=1 "$DTOOL" command --color always --runs_on h1 --command 'echo hi'
expect_output $'\e\[34mh1:\e\[0m hi'
expect_exit 1 dtool command --quiet --runs_on h1,h2 --command 'echo hi; exit 4'
expect_output 'h1: hi'
expect_error '^  h\[1-2\]: exit code 4$'

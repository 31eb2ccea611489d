#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A misspelt script starts nothing, and the one that was meant is named, unless the hosts may have it. A program of the folder is
# named before the run fails of it.
source "$(dirname "$0")/harness.sh"
lab 1
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
host=${address[0]}

mkdir code
cd code
echo 'print("learned")' >train.py
expect_exit 2 dtool run --runs_on "$host" --follow -- python3 -u tran.py
expect_error '^dtool: tran.py is not in this folder$'
expect_error '^hint: did you mean train.py\? one that the hosts have already: --no_sync'
[[ -z $(ls "$HOME/.dtool/killfiles" "$HOME/.dtool/records" 2>/dev/null) ]] || fail "something is recorded"
expect_exit 2 dtool run --runs_on "$host" --exclude '*.py' -- python3 train.py
expect_error '^dtool: train.py is excluded, so it is not sent$'
expect_exit 1 dtool run --runs_on "$host" --follow -- python3 -m trian
expect_error '^there is no module trian in this folder; did you mean train\?$'
expect_exit 0 dtool run --runs_on "$host" --follow -- python3 -m train
expect_no_error 'there is no module'
expect_exit 0 dtool run --runs_on "$host" --follow -- python3 -u train.py
expect_no_error 'is not in this folder'
expect_output 'learned'

# Those of a shell, and programs of the folder itself, as well.
printf '#!/bin/sh\necho hello\n' >hello.sh
cp hello.sh hello
chmod +x hello
expect_exit 2 dtool run --runs_on "$host" --follow -- bash -eu -o pipefail helo.sh
expect_error '^hint: did you mean hello.sh\?'
expect_exit 1 dtool run --runs_on "$host" --follow -- ./helo word
expect_error '^./helo is not in this folder, so it is not sent; did you mean ./hello\?$'
for program in 'bash -eu hello.sh' './hello' 'bash -c ./hello'; do
  # shellcheck disable=SC2086
  expect_exit 0 dtool run --runs_on "$host" --follow -- $program
  expect_no_error 'is not in this folder'
  expect_output 'hello$'
done

# What only a host knows of it.
printf '#!/usr/bin/pythn3\n' >bad.py
chmod +x bad.py
expect_exit 1 dtool run --runs_on "$host" -- ./bad.py
expect_error ': ./bad.py: its interpreter /usr/bin/pythn3 is not there$'
expect_exit 0 dtool command --runs_on "$host" --command 'mkdir -p ~/shelf && echo "print(\"from the host\")" >~/shelf/there.py'
# shellcheck disable=SC2088 # the tilde is the host's
expect_exit 0 dtool run --runs_on "$host" --code_path '~/shelf' --exclude there.py --follow -- python3 there.py
expect_error '^there.py is not in this folder, so it is not sent$'
expect_output 'from the host'
expect_exit 0 dtool kill --all --delete

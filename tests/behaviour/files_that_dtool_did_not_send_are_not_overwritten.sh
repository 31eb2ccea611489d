#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Files in a host's code folder that dtool did not put there, or that were edited there, and that differ from the tree's, are named and kept, on
# the first push and on later ones; --force overwrites them. An edit that keeps size and time arrives, on this machine and on a host.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 2

there() { echo "$DTOOL_LAB_FOLDER/host$1/root/here"; }
run_true() { run timeout 120 "$DTOOL" run --runs_on "$DTOOL_LAB_HOSTS" "$@" -- true; }
refuses() {
  run_true
  expect_equal 2 "$code"
  expect_error '^nothing was started$'
}
takes() {
  run_true "$@"
  expect_equal 0 "$code"
}

echo one >same
echo two >'a name'
ln -s same link
mkdir sub
echo three >sub/file
touch -d '2001-02-03 04:05:06.123456789' sub/file

# A folder of the user's own: h1 has edits of every kind, h2 what is the same.
mkdir -p "$(there 1)/sub" "$(there 2)"
echo one >"$(there 1)/same"
echo mine >"$(there 1)/a name"
echo mine >"$(there 1)/link"
echo THREE >"$(there 1)/sub/file"
touch -r sub/file "$(there 1)/sub/file"
echo mine >"$(there 1)/other"
cp -P same link "$(there 2)"
before=$(cd "$(there 1)" && find . ! -name . -printf '%p %i %C@ %l\n' | sort)
refuses
expect_error '^ *[0-9.]*: 3 files in ~/here are not as dtool sent them and differ from the code tree: a name, link, sub/file$'
expect_error '^ *hint: --force overwrites'
expect_equal "$before" "$(cd "$(there 1)" && find . ! -name . -printf '%p %i %C@ %l\n' | sort)"
expect_exit 0 dtool list --json
expect_equal '[]' "$(json 'd["runs"]')"
takes --force
for host in 1 2; do
  for file in same 'a name' sub/file; do expect_equal "$(<"$file")" "$(<"$(there $host)/$file")"; done
  expect_equal same "$(readlink "$(there $host)/link")"
done
expect_equal mine "$(<"$(there 1)/other")"

# Later: a program wrote a file, and the tree comes to have one of that name. Also where another file was touched.
echo result >"$(there 1)/new"
echo code >new
refuses
expect_error '^ *[0-9.]*: a file in ~/here is not as dtool sent it and differs from the code tree: new$'
expect_equal result "$(<"$(there 1)/new")"
touch "$(there 1)/same"
refuses
expect_error '^ *[0-9.]*: a file in ~/here is not as dtool sent it and differs from the code tree: new$'
expect_equal result "$(<"$(there 1)/new")"
echo code >"$(there 1)/new"
takes

# Edited on a host: one that the tree has, one that the tree has no longer, and beside them one that was only touched.
echo mine >"$(there 1)/same"
echo mine >"$(there 1)/sub/file"
touch "$(there 1)/new"
rm -r sub
before=$(cd "$(there 1)" && find . ! -name . -printf '%p %i %C@ %l\n' | sort)
refuses
expect_error '^ *[0-9.]*: 2 files in ~/here are not as dtool sent them and differ from the code tree: sub/file, same$'
expect_equal "$before" "$(cd "$(there 1)" && find . ! -name . -printf '%p %i %C@ %l\n' | sort)"
takes --force
expect_equal one "$(<"$(there 1)/same")"
[[ ! -e $(there 1)/sub ]] || fail "the file that the tree has no longer is still there"
mkdir sub
echo three >sub/file
touch -d '2001-02-03 04:05:06.123456789' sub/file
takes

# The same size and time, other content: edited here, where it comes with the question and by parcels, and there.
echo THREE >sub/file
touch -d '2001-02-03 04:05:06.123456789' sub/file
touch "$(there 2)/same"
takes
expect_equal THREE "$(<"$(there 1)/sub/file")"
expect_equal THREE "$(<"$(there 2)/sub/file")"
echo wrong >"$(there 1)/sub/file"
touch -r sub/file "$(there 1)/sub/file"
refuses
takes --force
expect_equal THREE "$(<"$(there 1)/sub/file")"
expect_exit 0 dtool kill --all --yes --delete

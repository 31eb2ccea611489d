#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sets of hosts and groups from elsewhere name the hosts that commands reach; `dtool hosts` prints them and reaches none. What a
# folder's own file says about groups is used after a yes, and TAB runs nothing.
source "$(dirname "$0")/harness.sh"
lab 3
mkdir -p "$HOME/.dtool" project
cat >inventory.ini <<'END'
[trainers]
h[1:2] ansible_user=nobody_here
[all_of_them:children]
trainers
END
sed -i 's/ ansible_user=nobody_here//' inventory.ini
cat >"$HOME/.dtool/config.toml" <<END
[groups]
all3 = "h[1-3]"
book = { from = "ansible: $PWD/inventory.ini", only = "all_of_them" }
told = { from = "command: echo h3; echo ran >>'$work/ran'" }
END

expect_exit 0 dtool command --runs_on '@all3!h2' --command 'echo here'
expect_equal 'h1: here h3: here' "$(sort "$out" | xargs)"
expect_exit 0 dtool command --runs_on '@book,@told' --pick 2 --command 'echo here'
expect_equal 2 "$(wc -l <"$out")"
rm "$work/ran"
expect_exit 0 dtool hosts '@all3&@book'
expect_equal 'h1 h2' "$(xargs <"$out")"
expect_exit 0 dtool hosts --fold 'gpu[0-14/2]^gpu4,login'
expect_equal 'gpu[0,2,6,8,10,12,14],login' "$(cat "$out")"
expect_exit 0 dtool hosts --count '@*'
expect_equal 3 "$(cat "$out")"
expect_exit 0 dtool hosts --json '@told'
expect_equal "['h3'] 1" "$(json '"%s %d" % (d["hosts"], d["count"])')"
rm "$work/ran"
expect_exit 0 dtool __complete hosts '@'
expect_output '@told'
[[ ! -e $work/ran ]] || fail 'TAB ran a command'

# Mistakes.
expect_exit 2 dtool hosts 'h1!h1,@nosuch'
expect_error 'there is no group @nosuch'
expect_exit 2 dtool command --runs_on 'h1!h1' --command true
expect_error 'leaves no host'
expect_exit 2 dtool command --runs_on 'h1,@all3' --command true
expect_error 'h1'
expect_exit 2 dtool hosts --pick 9 '@all3'
expect_error '--pick 9: there are 3 hosts to pick from'

# A folder's own file.
printf '[groups]\nevil = { from = "command: touch %s; echo h1" }\n' "$work/evil" >project/dtool.toml
cd project
expect_exit 2 dtool hosts @evil
[[ ! -e $work/evil ]] || fail 'a command of a file that was not accepted ran'
expect_exit 0 dtool trust --settings --yes
expect_exit 0 dtool hosts @evil
[[ -e $work/evil ]] || fail 'the command did not run after the yes'

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The code tree arrives as it is; a host that has it is asked and no more; of a changed tree only what differs is sent; a host whose files were
# edited, deleted or are known to another launcher only, is mended; a push that is broken off leaves the old tree, and the next one goes on from
# there. All that without an rsync.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 4

# Counts the rsyncs that this machine starts.
real=$(command -v rsync)
mkdir "$work/bin"
printf '#!/bin/bash\necho >>%q\nexec %q "$@"\n' "$work/rsyncs" "$real" >"$work/bin/rsync"
chmod +x "$work/bin/rsync"
PATH=$work/bin:$PATH

push() {
  : >"$work/rsyncs"
  expect_exit 0 timeout 120 "$DTOOL" run --quiet --runs_on "$DTOOL_LAB_HOSTS" "$@" -- true
  expect_equal 0 "$(wc -l <"$work/rsyncs")"
}
there() { echo "$DTOOL_LAB_FOLDER/host$1/root/here"; }
# What is in the folder, without outputs and what the hosts have of their own.
listing() { (cd "$1" && find . -path ./experiment_output -prune -o ! -type d ! -name 'foreign*' ! -path './.~dtool~*' -printf '%p %s %T@ %m %l\n' | sort | sha256sum); }
expect_tree() {
  local host
  for host; do expect_equal "$(listing .)" "$(listing "$(there "$host")")"; done
}
inodes() { (cd "$(there "$1")" && find . -path ./experiment_output -prune -o ! -type d -printf '%p %i %C@\n' | sort); }

mkdir -p sub/deep
for ((i = 0; i < 100; i++)); do echo "$i $RANDOM" >"sub/file$i"; done
echo first >$'sub/new\nline'
echo first >-rf
ln -s file1 sub/link
ln -s /nowhere sub/deep/dangling
chmod 750 sub/file3
touch -d '2001-02-03 04:05:06.123456789' sub/file4
push
expect_equal 700 "$(stat -c %a "$(there 1)")" # it is made below the home folder, for its user alone
expect_tree 1 2 3 4

before=$(inodes 2)
push
expect_equal "$before" "$(inodes 2)"

# One file more, one less, one changed: the others are not touched.
echo changed >sub/file5
echo more >sub/more
rm sub/file6
push
expect_tree 1 2 3 4
expect_equal 1 "$(comm -13 <(echo "$before") <(inodes 2) | grep -c file)"

# By hand, on the hosts.
echo edited >"$(there 2)/sub/file7"
rm "$(there 3)/sub/file8"
echo foreign >"$(there 4)/sub/foreign"
push --force
expect_tree 1 2 3 4
expect_file "$(there 4)/sub/foreign"
push

# A package needs no program of the host's.
for program in tar zstd gzip find openssl; do fault hide h1 $program; done
echo again >sub/file9
push
expect_tree 1 2 3 4

# Another launcher sent what is there.
rm -r "$HOME/.dtool/sent"
echo "and again" >sub/file9
push
expect_tree 1 2 3 4

# A launcher that is killed while a large file is on its way: what has come is not sent again.
old=$(listing "$(there 3)")
head -c 3000000 /dev/urandom >big
echo "not before big" >sub/file10
fault slow h3 rate 1mbit
"$DTOOL" run --quiet --runs_on "h3,h4" -- true >/dev/null 2>&1 </dev/null &
launcher=$!
part() { find "$(there 3)" -path '*/parts/*' -size +1000k; }
# shellcheck disable=SC2317
arrives() { [[ -n $(part) ]]; }
eventually 60 arrives
kill -KILL "$launcher"
wait "$launcher" || true
expect_equal "$old" "$(listing "$(there 3)")"
fault mend h3
inode=$(stat -c %i "$(part)")
push
expect_tree 1 2 3 4
expect_equal "$inode" "$(stat -c %i "$(there 3)/big")"
expect_equal '' "$(find "$(there 3)" -name '.~dtool~*')"
expect_exit 0 dtool kill --all --yes --delete

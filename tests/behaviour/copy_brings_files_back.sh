#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool copy --from` brings files and folders of all hosts here, a folder for each host; the second time only what differs; hosts that see one
# folder send it once; what is not there on a host is named, and the others' files come.
# shellcheck disable=SC2088  # the hosts' tildes
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 3
root() { printf '%s' "$DTOOL_LAB_FOLDER/host$1/root"; }
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
for host in 1 2 3; do
  mkdir -p "$(root $host)/out/deep folder"
  echo "result of $host" >"$(root $host)/out/deep folder/result"
  head -c 300000 /dev/urandom >"$(root $host)/out/large"
  echo "log of $host" >"$(root $host)/log"
  ln -s large "$(root $host)/out/link"
  touch -d '2001-02-03 04:05:06.123456789' "$(root $host)/out/large"
done

expect_exit 0 dtool copy --from "$DTOOL_LAB_HOSTS" '~/out' log back
for host in 1 2 3; do
  mine=back/${address[host - 1]}
  diff -r --no-dereference "$(root $host)/out" "$mine/out" || fail "host $host has other files"
  expect_equal "log of $host" "$(cat "$mine/log")"
  expect_equal "$(stat -c %y "$(root $host)/out/large")" "$(stat -c %y "$mine/out/large")"
  expect_error "^${address[host - 1]}: [0-9]+ files, 300\.0 kB into .*/back/${address[host - 1]}$"
done

# What cannot come is named; what is here, and did not come so, stays until the user says otherwise.
mkdir "$(root 1)/odd"
mkfifo "$(root 1)/odd/pipe"
ln -s /etc/passwd "$(root 1)/odd/out"
echo there >"$(root 1)/odd/file"
mkdir -p odds/h1/odd
echo mine >odds/h1/odd/file
expect_exit 1 dtool copy --from h1 odd odds
expect_error '^h1: left out, since only files, folders and links within the source come: out -> /etc/passwd, pipe$'
expect_error 'hint: .*--force replaces it'
expect_equal mine "$(cat odds/h1/odd/file)"
expect_exit 0 dtool copy --force --from h1 odd odds
expect_equal there "$(cat odds/h1/odd/file)"
# Nobody else decides where it goes.
mkdir -m 1777 open
mkdir open/theirs
chown 65534 open/theirs
expect_exit 2 dtool copy --from h1 odd open/theirs
expect_error '/open/theirs belongs to nobody, who could change or lead elsewhere what comes'

echo more >>"$(root 2)/out/deep folder/result"
expect_exit 0 dtool copy --json --from "$DTOOL_LAB_HOSTS" out/ log back/flat
expect_exit 0 dtool copy --json --from "$DTOOL_LAB_HOSTS" out back
expect_equal '0 1 0' "$(json '" ".join(str(h["files"]) for h in d["hosts"])')"
expect_file "back/flat/${address[0]}/large"
expect_equal 2 "$(wc -l <"back/${address[1]}/out/deep folder/result")"

mkdir "$work/one"
echo seen >"$work/one/file"
expect_exit 0 dtool copy --json --from "$DTOOL_LAB_HOSTS" "$work/one" shared
expect_equal 2 "$(json 'sum("same_as" in h for h in d["hosts"])')"
expect_equal 1 "$(find shared -name file | wc -l)"

# A host that shares one source and has another of its own sends both.
expect_exit 0 dtool copy --json --from "$DTOOL_LAB_HOSTS" "$work/one" log mixed
expect_equal 0 "$(json 'sum("same_as" in h for h in d["hosts"])')"
for host in 1 2 3; do
  expect_equal "seen log of $host" "$(cat "mixed/${address[host - 1]}/one/file" "mixed/${address[host - 1]}/log" | xargs)"
done

# Folders of equal numbers, as machines of one image have them, are not one folder.
for host in 1 2 3; do on "$host" bash -c "mkdir /dev/shm/results && echo of $host >/dev/shm/results/out.txt"; done
expect_equal 1 "$(for host in 1 2 3; do on "$host" stat -c %i /dev/shm/results; done | sort -u | wc -l)"
expect_exit 0 dtool copy --from "$DTOOL_LAB_HOSTS" /dev/shm/results alike
expect_equal 'of 1 of 2 of 3' "$(cat alike/*/results/out.txt | sort | xargs)"
expect_equal out.txt "$(on 1 ls -A /dev/shm/results)"

rm "$(root 2)/log"
expect_exit 1 dtool copy --from "$DTOOL_LAB_HOSTS" log lacking
expect_error "^  ${address[1]}: there is no file /root/log"
expect_exit 2 dtool copy --from "$DTOOL_LAB_HOSTS" '~/a/log' '~/b/log' back
expect_error '~/a/log and ~/b/log would both be copied to log'
expect_exit 2 dtool copy --runs_on local ./ "$PWD/inside"
expect_error '^dtool: \./ would be copied into itself: '
expect_file "lacking/${address[2]}/log"
expect_exit 2 dtool copy --from "$DTOOL_LAB_HOSTS" --runs_on h1 out back
echo file >file
expect_exit 2 dtool copy --from "$DTOOL_LAB_HOSTS" out file
expect_error 'file is there, but is not a folder'
expect_exit 2 dtool copy --from "$DTOOL_LAB_HOSTS" --exclude x out back

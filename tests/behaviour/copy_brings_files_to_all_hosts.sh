#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool copy` brings files and folders to all hosts as they are here, and leaves the launcher about once; the same command again sends what differs
# and nothing else; hosts that see one folder are sent it once; what cannot be copied is named, and then nothing is written anywhere.
# shellcheck disable=SC2088  # the hosts' tildes
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 4
root() { printf '%s' "$DTOOL_LAB_FOLDER/host$1/root"; }
link=$(ip -o route get "${DTOOL_LAB_HOSTS%%,*}" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
uplink() { cat "/sys/class/net/$link/statistics/tx_bytes"; }
# All that is to arrive of a folder, in words. Of links the time is theirs; the folder itself is named, too.
facts() { (cd "$1" && find . -printf '%p %y %m %s %T@ %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum); }
expect_same() {
  local host
  facts "$1" | sed 's: f [4567]\([0-7][0-7][0-7]\) : f \1 :' >"$work/wanted" # no file acts for another owner there
  for host in 1 2 3 4; do facts "$(root $host)/$2" | diff "$work/wanted" - >&2 || fail "host $host has something else than $1 in $2"; done
}
expect_no_leftovers() { expect_equal '' "$(find "$DTOOL_LAB_FOLDER"/host*/root -name '.~dtool~*')"; }
# shellcheck disable=SC2317
sent() { json 'sum(h["sent_bytes"] for h in d["hosts"])'; }

mkdir -p 'data/a b/deep' data/empty data/read_only
head -c 90000000 /dev/urandom >data/large  # more than a parcel
for i in $(seq 300); do echo "$i $RANDOM" >"data/a b/file$i"; done
printf 'x' >$'data/a b/line\nend "quoted" $HOME \\ \xff'
: >data/none
echo locked >data/read_only/file
ln -s ../elsewhere/nothing data/dangling
ln -s 'a b' data/to_folder
chmod 640 data/large
chmod 4751 data/none
chmod 700 'data/a b/deep'
touch -d '2001-02-03 04:05:06.123456789' data/large 'data/a b/file7'
touch -h -d '2002-02-03 04:05:06.5' data/dangling
chmod 555 data/read_only
touch -d '2003-01-01' data/empty data
bytes=$(find data -type f -printf '%s\n' | awk '{ all += $1 } END { print all }')

before=$(uplink)
expect_exit 0 dtool copy --runs_on "$DTOOL_LAB_HOSTS" data '~/sets'
expect_error '  sent 31[0-9] of 31[0-9] files and folders, 90\.0 MB, into /root/'
((($(uplink) - before) * 10 <= bytes * 11)) || fail "$(($(uplink) - before)) bytes left the launcher for $bytes bytes to 4 hosts"
expect_same data sets/data
expect_no_leftovers

# Again: nothing is sent.
before=$(uplink)
expect_exit 0 dtool copy --json --runs_on "$DTOOL_LAB_HOSTS" data '~/sets'
expect_equal 0 "$(sent)"
expect_equal '0 0 0 0' "$(json '" ".join(str(h["lacked"]) for h in d["hosts"])')"
(($(uplink) - before < 400000)) || fail "$(($(uplink) - before)) bytes left the launcher for nothing"

# One file changed, of the same size; one has a new time alone, and one a new mode.
printf 'y' | dd of=data/large bs=1 seek=1234 conv=notrunc status=none
echo new >'data/a b/file5'
touch 'data/a b/file6'
chmod 600 'data/a b/file8'
expect_exit 0 dtool copy --json --runs_on "$DTOOL_LAB_HOSTS" data '~/sets'
expect_equal "$((4 * (90000000 + 4)))" "$(sent)"
expect_same data sets/data
# A file that was edited there, keeping size and time, is none of what differs; with another time it is, and stays until the user says otherwise.
echo own >"$(root 2)/sets/data/a b/file5"
expect_exit 2 dtool copy --runs_on "$DTOOL_LAB_HOSTS" data '~/sets'
expect_error '/root/sets/data/a b/file5 is not as dtool copied it, and differs$'
expect_error 'nothing was copied'
expect_equal own "$(cat "$(root 2)/sets/data/a b/file5")"
expect_exit 0 dtool copy --force --json --runs_on "$DTOOL_LAB_HOSTS" data '~/sets'
expect_equal '0 4 0 0' "$(json '" ".join(str(h["sent_bytes"]) for h in d["hosts"])')"
expect_same data sets/data

# What is in a folder, several sources, what is left out; a relative folder begins at home, and files there that are not copied stay.
on 1 mkdir /root/flat
echo mine >"$(root 1)/flat/mine"
echo one >one
expect_exit 0 dtool copy --runs_on "$DTOOL_LAB_HOSTS" --exclude large --exclude 'a b/' data/ one flat
expect_equal 'dangling empty mine none one read_only to_folder' "$(find "$(root 1)/flat" -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort | xargs)"
expect_equal one "$(cat "$(root 4)/flat/one")"
expect_no_leftovers
ln -s data linked
expect_exit 0 dtool copy --runs_on "$DTOOL_LAB_HOSTS" --exclude large linked links
expect_file "$(root 3)/links/linked/a b/file7"

# Hosts that see one folder: it is sent to one of them.
seen_by_all=$work/shared  # hosts see this machine's /tmp
expect_exit 0 dtool copy --json --runs_on "$DTOOL_LAB_HOSTS" data "$seen_by_all"
expect_equal "$(($(find data -type f -printf '%s\n' | awk '{ all += $1 } END { print all }')))" "$(sent)"
expect_equal 3 "$(json 'sum("same_as" in h for h in d["hosts"])')"
cmp data/large "$seen_by_all/data/large"
expect_equal '' "$(find "$seen_by_all" -name '.~*')"

# Another disk that is mounted below the folder: files and links get their places there, too; its room is looked at before.
mkdir -p mixed/sub/inner
echo here >mixed/here
head -c 3000000 /dev/urandom >mixed/sub/inner/leaf
ln -s inner/leaf mixed/sub/link
touch -h -d '2002-02-03 04:05:06.5' mixed/sub/link
on h3 mkdir -p mounts/mixed/sub
disk_on h3 size=2m /root/mounts/mixed/sub
expect_exit 2 dtool copy --runs_on "$DTOOL_LAB_HOSTS" mixed mounts
expect_error '/root/mounts/mixed/sub/?[a-z]* is another disk with too little room: 300[0-9]* bytes are needed there and 2097152 are free'
expect_no_file "$(root 1)/mounts"
sudo_on h3 mount -o remount,size=9m /root/mounts/mixed/sub
expect_exit 0 dtool copy --runs_on "$DTOOL_LAB_HOSTS" mixed mounts
mixed_facts='find . -printf "%p %y %m %T@ %l\n" | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum'  # folders have other sizes there
(cd mixed && eval "$mixed_facts") >"$work/wanted"
on h3 sh -c "cd mounts/mixed && $mixed_facts" | diff "$work/wanted" -
expect_no_leftovers
expect_equal '' "$(on h3 find mounts -name '.~dtool~*')"
sudo_on h3 umount /root/mounts/mixed/sub

# A file system that is none for files.
expect_exit 2 dtool copy --runs_on h1 one /proc/nothing
expect_error '/proc is on a file system that has no room for files$'

# A host that is not there holds back nobody.
expect_exit 1 dtool copy --runs_on "${DTOOL_LAB_HOSTS},nobody@127.0.0.1:1" one partly
expect_error '^  nobody@127.0.0.1:1: '
expect_equal one "$(cat "$(root 4)/partly/one")"

# Mistakes: the thing is named, and nothing is written anywhere.
expect_refused() {
  local pattern=$1
  shift
  expect_exit 2 dtool copy --runs_on "$DTOOL_LAB_HOSTS" "$@"
  expect_error "$pattern"
  for host in 1 2 3 4; do expect_no_file "$(root $host)/never"; done
  expect_no_leftovers
}
expect_refused 'there is no missing' one missing never
expect_refused 'one/ is no folder' one/ never
expect_refused 'where to copy one is not said' one
expect_refused 'h1:there: a folder on the hosts is named without a host' one h1:there
expect_refused 'the hosts replace only ~/' one '$HOME/there'
expect_refused 'the hosts replace only ~/' one '~other/there'
expect_refused '\.\. leads out of the home folder' one ..
expect_refused "^$HOME/x is a path of this machine.s home folder; '~/x' \(in quotes\) is below" missing "$HOME/x"
expect_refused '~/\.\./there leads out of the home folder' one '~/../there'
expect_refused '\.\./there leads out of the home folder' one ../there
mkdir other
echo two >other/one
expect_refused 'one and other/one would both be copied to one$' one other/one never
expect_refused 'one and other/one would both be copied to one$' one other/ never
mkdir dark
echo dark >dark/file
chmod 000 dark/file
if [[ $(id -u) != 0 ]]; then expect_refused 'cannot read dark/file: Permission denied' dark never; fi
echo file >"$(root 3)/file"
expect_refused '/root/file is there, but is not a folder' one file
expect_refused '/root/file is there, but is not a folder' one file/below
on 2 mkdir /root/there /root/there/one /root/there/data2
expect_refused '/root/there/one is a folder, and a file is to be copied there' one there
expect_no_error '--force'
on 2 mkdir -p /root/few
disk_on 2 nr_inodes=1 /root/few
expect_refused '/root/few has room for 0 more files, and 1 are lacking' one few
expect_error 'hint: free some space there'
sudo_on 2 umount /root/few
ln -s /nowhere "$(root 2)/lost"
expect_refused '/root/lost is a link that leads nowhere' one lost
expect_error 'hint: move it away'
expect_equal '' "$(find "$DTOOL_LAB_FOLDER"/host[134]/root -name there)"
# A link there is not followed.
ln -s /tmp "$(root 2)/there/other"
expect_refused '/root/there/other is a link, and a folder is to be copied there' other there
expect_equal '' "$(find "$DTOOL_LAB_FOLDER"/host[134]/root -name there)"

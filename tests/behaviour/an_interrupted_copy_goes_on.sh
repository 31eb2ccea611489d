#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A copy that is killed, interrupted or out of room on a host leaves what has come aside, and the same command sends the rest only; a byte that was
# spoilt meanwhile is noticed; a file that changes while it is read is named; two copies into one folder do not mix; a host with too little room
# is named with the bytes before anything is written.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 4
root() { printf '%s' "$DTOOL_LAB_FOLDER/host$1/root"; }
link=$(ip -o route get "${DTOOL_LAB_HOSTS%%,*}" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
slow() { tc qdisc replace dev "$link" root tbf rate 200mbit burst 128kbit latency 400ms; }
fast() { tc qdisc del dev "$link" root; }
size=200000000
mkdir data
head -c "$size" /dev/urandom >data/large
echo small >data/small
parts() { find "$DTOOL_LAB_FOLDER"/host"$1"/root/sets/.~dtool~copy-*/parts -type f ! -name '*.sum' -printf '%s\n' 2>/dev/null | sort -n | tail -n 1; }
half_is_there() { local host; for host in 1 2 3 4; do (($(parts $host) + 0 > 60000000)) || return 1; done; }
expect_all() { local host; for host in 1 2 3 4; do cmp data/large "$(root $host)/sets/data/large" || fail "host $host has another file"; done; }
expect_nothing_aside() { expect_equal '' "$(find "$DTOOL_LAB_FOLDER"/host*/root -name '.~dtool~*')"; }
begin() {
  "$DTOOL" copy --runs_on "$DTOOL_LAB_HOSTS" data sets >"$out" 2>"$err" </dev/null &
  launcher=$!
  eventually 60 half_is_there
}
forget() { rm -rf "$DTOOL_LAB_FOLDER"/host*/root/sets; }
sent() { json 'sum(h["sent_bytes"] for h in d["hosts"])'; }

# Killed: nothing half has its name, and the next copy sends what is lacking. On the launcher only the parcels on their way take room.
slow
begin
two_parcels_are_there() { local host; for host in 1 2 3 4; do (($(parts $host) + 0 > 130000000)) || return 1; done; }
eventually 60 two_parcels_are_there
kept=$(find "/proc/$launcher/fd" -lname '*/dtool.* (deleted)' | wc -l)
((kept <= 3)) || fail "$kept parcels are kept on the launcher"
kill -KILL "$launcher"
wait "$launcher" || true
for host in 1 2 3 4; do expect_no_file "$(root $host)/sets/data/large"; done
expect_exit 0 dtool copy --json --runs_on "$DTOOL_LAB_HOSTS" data sets
(($(sent) <= 4 * (size - 60000000))) || fail "$(sent) bytes were sent again"
expect_all
expect_nothing_aside

# Interrupted: it ends soon, says what to do, and goes on likewise. Host 2 has a spoilt byte meanwhile: all of its file comes again, and is right.
forget
begin
kill -INT "$launcher"
expect_ended 130 "$launcher" 'dtool copy, interrupted'
expect_error 'interrupted: what has come stays'
part=$(find "$(root 2)"/sets/.~dtool~copy-*/parts -type f ! -name '*.sum' -size +1M)
printf 'spoilt' | dd of="$part" bs=1 seek=1000 conv=notrunc status=none
fast
expect_exit 0 dtool copy --json --runs_on "$DTOOL_LAB_HOSTS" data sets
expect_error '2: data/large arrived with another SHA-256, and was sent again'
expect_all
expect_nothing_aside

# Two at once: the second one is refused, the first one ends well.
forget
slow
begin
expect_exit 2 "$DTOOL" copy --runs_on "${DTOOL_LAB_HOSTS%%,*}" data sets
expect_error "another dtool copy is writing into /root/sets on .* \(process $launcher here\)"
fast
expect_ended 0 "$launcher" 'dtool copy, beside another one'
expect_all

# A file changes while it is sent: it is named, and is nowhere under its name.
forget
slow
begin
touch data/large
fast
expect_ended 1 "$launcher" 'dtool copy, of a file that changes'
expect_error 'data/large changed while it was being sent'
for host in 1 2 3 4; do expect_no_file "$(root $host)/sets/data/large"; done
expect_exit 0 dtool copy --runs_on "$DTOOL_LAB_HOSTS" data sets
expect_all
expect_nothing_aside

# Too little room on a host: the bytes are told, and no host gets anything.
forget
on h3 mkdir sets
disk_on h3 size=100m /root/sets
expect_exit 2 dtool copy --runs_on "$DTOOL_LAB_HOSTS" data sets
expect_error 'too little room for /root/sets: 300[0-9]* bytes \(.*\) are needed there and 104857600 bytes \(.*\) are free'
expect_error '^nothing was copied$|nothing was copied'
for host in 1 2 4; do expect_no_file "$(root $host)/sets"; done
expect_equal '' "$(on h3 ls -A sets)"
sudo_on h3 umount /root/sets

# The room ends meanwhile: the host is named, the others have all, what came stays there.
disk_on h3 size=330m /root/sets
slow
"$DTOOL" copy --runs_on "$DTOOL_LAB_HOSTS" data sets >"$out" 2>"$err" </dev/null &
launcher=$!
three_have_half() { local host; for host in 1 2 4; do (($(parts $host) + 0 > 60000000)) || return 1; done; }
eventually 60 three_have_half
on h3 sh -c 'cat /dev/zero >sets/fill 2>/dev/null || true'
fast
expect_ended 1 "$launcher" 'dtool copy, with a disk that fills'
expect_error "^  $(sed -n 3p "$DTOOL_LAB_FOLDER/hosts"): .*No space left on device"
for host in 1 2 4; do cmp data/large "$(root $host)/sets/data/large" || fail "host $host has another file"; done
on h3 rm sets/fill
expect_exit 0 dtool copy --json --runs_on "$DTOOL_LAB_HOSTS" data sets
(($(sent) < size)) || fail 'what had come was sent again'
expect_equal "$(sha256sum <data/large)" "$(on h3 sha256sum sets/data/large | sed 's/ .*/  -/')"

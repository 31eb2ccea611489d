#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each lab host has its own name, home, screens, processes and network, and reaches the other hosts; what is hidden or cut is gone.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3

expect_exit 0 ssh h2 'hostname; touch ~/here /dev/shm/here; screen -dmS job sleep 100'
expect_output '^lab-.*-2$'
expect_exit 0 ssh "$(sed -n 2p "$DTOOL_LAB_FOLDER/hosts")" 'ls ~; screen -ls'
expect_output '^here$'
expect_output '[.]job'
expect_exit 0 ssh h1 'ls ~ /dev/shm; screen -ls || true; ps ax'
expect_no_output '^here$'
expect_no_output '[.]job'
expect_no_output 'sleep 100'
expect_exit 0 ssh h1 'read -r greeting < /dev/tcp/h3/22; echo "$greeting"'
expect_output '^SSH-2.0'

# A reboot leaves the disk, and nothing in memory.
boots() { for host in h1 h2 h3; do on $host cat /proc/sys/kernel/random/boot_id; done; }
before=$(boots)
expect_equal 3 "$(sort -u <<<"$before" | wc -l)"
fault reboot h2
expect_equal "$(sed -n '1p;3p' <<<"$before")" "$(boots | sed -n '1p;3p')"
[[ $(boots) != "$before" ]] || fail 'the host has the boot id that it had'
expect_exit 0 ssh h2 'ls ~; ls /dev/shm; screen -ls || true; ps ax'
expect_equal 1 "$(grep -c '^here$' "$out")"
expect_no_output '[.]job'
expect_no_output 'sleep 100'

fault hide h1 rsync
expect_exit 127 ssh h1 rsync --version
expect_exit 0 ssh h2 rsync --version
fault unhide h1 rsync
expect_exit 0 ssh h1 rsync --version

fault cut h1
expect_exit 255 ssh -o ConnectTimeout=1 h1 true
fault mend h1
expect_exit 0 ssh h1 true
expect_exit 255 ssh -o ConnectTimeout=1 "$DTOOL_LAB_DEAD" true
expect_error 'timed out'

# 30 ms each way: two round trips at least until the server's greeting is here.
fault slow h1 delay 30ms
before=${EPOCHREALTIME/[.,]/}
expect_exit 0 ssh h1 true
((${EPOCHREALTIME/[.,]/} - before > 120000)) || fail 'slow is not slow'
fault mend h1

fault rekey h3
expect_exit 255 ssh h3 true
expect_error 'IDENTIFICATION HAS CHANGED'
fault forget h3
expect_exit 255 ssh h3 true
expect_error 'No ED25519 host key is known'

fault stop-sshd h2
expect_exit 255 ssh h2 true
expect_error 'Connection refused'
fault restart-sshd h2 -o MaxStartups=1:100:1
exec 3<>"/dev/tcp/$(sed -n 2p "$DTOOL_LAB_FOLDER/hosts")/22"
expect_exit 255 ssh h2 true
exec 3>&-
eventually 5 ssh h2 true

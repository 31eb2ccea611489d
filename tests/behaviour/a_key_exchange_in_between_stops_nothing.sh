#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A server that exchanges keys anew after every few megabytes, as RekeyLimit says, gets all of an upload and gives all of a download,
# reached directly and through a jump host that does the same.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 2 --behind
for host in h1 h2; do fault restart-sshd "$host" -o 'RekeyLimit 2M' -o LogLevel=DEBUG1; done
exchanges() { grep -c 'SSH2_MSG_KEXINIT received' "$DTOOL_LAB_FOLDER/host$1/sshd.log"; }

# A package, which goes over one channel to each.
head -c 80000000 /dev/urandom >data
expect_exit 0 timeout -k 1 100 "$DTOOL" run --quiet --runs_on h1,h2 -- true
for host in 1 2; do
  cmp data "$DTOOL_LAB_FOLDER/host$host/root/here/data" || fail "host $host has another tree"
  (($(exchanges $host) > 10)) || fail "host $host exchanged keys $(exchanges $host) times"
done

# TERM ends dtool within a second at whatever point of such an upload. The next push repairs what was cut off.
for delay in 0.3 0.5 0.8; do
  head -c 80000000 /dev/urandom >data
  "$DTOOL" run --quiet --runs_on h1,h2 -- true >"$out" 2>"$err" &
  pid=$!
  sleep "$delay"
  kill "$pid" || fail "the upload was over after $delay s: $(cat "$err")"
  eventually 3 bash -c "! kill -0 $pid"  # a busy machine's second
  code=0
  wait "$pid" || code=$?
  ((code != 0)) || fail "the upload ended well after TERM"
done
expect_exit 0 timeout -k 1 100 "$DTOOL" run --quiet --runs_on h1,h2 -- true
for host in 1 2; do cmp data "$DTOOL_LAB_FOLDER/host$host/root/here/data" || fail "host $host has another tree"; done

# An rsync, whose streams go both ways.
for host in 1 2; do echo edited >"$DTOOL_LAB_FOLDER/host$host/root/here/data"; done
expect_exit 0 timeout -k 1 100 "$DTOOL" run --quiet --force --runs_on h1,h2 -- true
for host in 1 2; do cmp data "$DTOOL_LAB_FOLDER/host$host/root/here/data" || fail "host $host has another tree"; done

# Output, at the same time from both.
expect_exit 0 timeout -k 1 100 "$DTOOL" command --runs_on h1,h2 --command 'seq 3000000'
for host in h1 h2; do expect_equal "$(seq 3000000 | sha256sum)" "$(sed -n "s/^$host: //p" "$out" | sha256sum)"; done

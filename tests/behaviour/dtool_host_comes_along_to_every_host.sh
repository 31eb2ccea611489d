#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dtool brings its program to a host with the first request that needs it, once for each content, where programs may run and nobody else
# may write; `dtool command` leaves nothing there.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 3 --private_tmp
touch code
where_it_is() { on "$1" sh -c "find /root/.dtool/host /var/tmp /tmp -name dtool-host -type f 2>/dev/null; true"; }
start_on() { expect_exit 0 dtool run --json --runs_on "$1" -- true; }
end_all() { expect_exit 0 dtool kill --all --yes --delete; }

expect_exit 0 dtool command --runs_on h1 --command 'test ! -e ~/.dtool'
expect_equal '' "$(on h1 ls -A /root/.dtool 2>/dev/null || true)"

# Once, for the user alone, and not again.
start_on h1
first=$(where_it_is h1)
expect_equal 1 "$(wc -l <<<"$first")"
grep -qE '^/root/\.dtool/host/[0-9a-f]{64}/dtool-host$' <<<"$first" || fail "it is not where it should be: $first"
expect_equal 700 "$(on h1 stat -c %a /root/.dtool/host)"
expect_equal "$(basename "$(dirname "$first")")" "$(on h1 sha256sum "$first" | cut -d ' ' -f 1)"
written=$(on h1 stat -c '%i %Z' "$first")
expect_exit 0 dtool status
expect_equal "$written" "$(on h1 stat -c '%i %Z' "$first")"

# A disk that lost power has lost parts of it, or all: it is brought again, whole.
for damage in 'truncate -s 0 ' 'truncate -s 20000 ' 'dd if=/dev/zero bs=1k seek=1 count=100 conv=notrunc status=none of='; do
  on h1 sh -c "cp -p $first damaged && ${damage}damaged && mv damaged $first"
  expect_exit 0 dtool status
  expect_equal "$(basename "$(dirname "$first")")" "$(on h1 sha256sum "$first" | cut -d ' ' -f 1)"
done
# A folder in its place makes way for it.
on h1 sh -c "rm $first && mkdir $first"
expect_exit 0 dtool status
on h1 test -f "$first"
# One that is started and says nothing.
printf '#!/bin/sh\nexec sleep 600\n' >"$DTOOL_LAB_FOLDER/host1/$first"
on h1 chmod 700 "$first"
SECONDS=0
expect_exit 1 timeout 100 "$DTOOL" status
expect_output 'dtool-host was started on it, and said nothing for 15 seconds$'
((SECONDS < 40)) || fail "it took $SECONDS s"
on h1 rm "$first"
end_all

# A version that no start has used for 30 days goes with the next start, unless a process runs it; a younger one stays.
# shellcheck disable=SC2016
on h1 sh -c 'cd /root/.dtool/host && for i in 1 2 3; do n=$(printf %064d $i); mkdir $n && cp /bin/sleep $n/dtool-host; done
  touch -d "31 days ago" $(printf "%064d %064d" 1 2); touch -d "29 days ago" $(printf %064d 3)'
on h1 sh -c "exec /root/.dtool/host/$(printf %064d 2)/dtool-host 600" >/dev/null 2>&1 &
eventually 10 on h1 sh -c "pgrep -f 'dtool-host 600'"
start_on h1
gone() { on h1 sh -c "! test -e /root/.dtool/host/$(printf %064d 1)"; }
eventually 10 gone
expect_equal "$(printf '%064d %064d' 2 3)" "$(on h1 sh -c 'cd /root/.dtool/host && echo 00000000*')"
end_all

# Hosts of two processors share the home folder: each starts its own. One of a third kind is told.
other_program=$(find "$(dirname "$DTOOL")" -maxdepth 1 -name 'dtool-host-*' ! -name '*.gz' -type f)
if [[ -n $other_program ]]; then
  other=$(sha256sum "$other_program" | cut -d ' ' -f 1)
  on h1 sh -c "mkdir /root/.dtool/host/$other && printf 'not for this processor' >/root/.dtool/host/$other/dtool-host && chmod 700 /root/.dtool/host/$other/dtool-host"
  start_on h1
  end_all
fi
mkdir "$DTOOL_LAB_FOLDER/host3/root/bin"
printf '#!/bin/sh\necho Linux riscv64\n' >"$DTOOL_LAB_FOLDER/host3/root/bin/uname"
chmod +x "$DTOOL_LAB_FOLDER/host3/root/bin/uname"
# shellcheck disable=SC2016
echo 'PATH=/root/bin:$PATH' >"$DTOOL_LAB_FOLDER/host3/root/.bashrc"
expect_exit 2 dtool run --runs_on h3 -- true
expect_error 'it is Linux riscv64, and this dtool has dtool-host for Linux [a-z0-9_]+( or [a-z0-9_]+)? only'
rm -r "$DTOOL_LAB_FOLDER/host3/root/bin" "$DTOOL_LAB_FOLDER/host3/root/.bashrc"

# It crosses the network compressed where the host has gzip, and as it is where it has none.
bin=$DTOOL_LAB_FOLDER/host3/root/bin
mkdir "$bin"
find /usr/bin -maxdepth 1 ! -type d ! -name gzip -exec ln -s -t "$bin" {} +
echo 'PATH=/root/bin' >"$DTOOL_LAB_FOLDER/host3/root/.bashrc"
start_on h3
end_all
on h3 rm -r /root/.dtool/host
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "$@" >>/root/asked_gzip\nexec /usr/bin/gzip "$@"\n' >"$bin/gzip"
chmod +x "$bin/gzip"
start_on h3
end_all
expect_equal $'-c\n-dc' "$(on h3 cat /root/asked_gzip)"
sudo_on h3 rm -r /root/.dtool /root/.bashrc /root/bin

# A home folder from which nothing runs; and before dtool came, another user has taken the name that it would take.
on h2 mkdir -p /root/.dtool
disk_on h2 noexec /root/.dtool
on h2 sh -c 'mkdir -m 777 /var/tmp/dtool-host-0 && chown 4242 /var/tmp/dtool-host-0'
start_on h2
second=$(where_it_is h2)
grep -qE '^/tmp/dtool-host-0/[0-9a-f]{64}/dtool-host$' <<<"$second" || fail "it is not where it should be: $second"
expect_equal 700 "$(on h2 stat -c %a /tmp/dtool-host-0)"
expect_equal '' "$(on h2 ls -A /var/tmp/dtool-host-0)"
expect_exit 0 dtool status
end_all
on h2 rm -rf /var/tmp/dtool-host-0 /tmp/dtool-host-0

# That user's program there runs nothing, though it has the right name and answers.
hash=$(basename "$(dirname "$first")")
# shellcheck disable=SC2016
on h2 sh -c 'd=/var/tmp/dtool-host-0/$1; mkdir -p "$d" && printf "#!/bin/sh\ntouch /tmp/was_run\necho dtool-host 1\n" >"$d/dtool-host" &&
  chmod 755 "$d/dtool-host" && chown -R 4242 /var/tmp/dtool-host-0' sh "$hash"
start_on h2
expect_equal '' "$(on h2 sh -c 'ls /tmp/was_run 2>/dev/null || true')"
end_all

# No place at all: the host says so, and the others are not started either.
on h3 mkdir -p /root/.dtool
disk_on h3 noexec /root/.dtool
for folder in /var/tmp /tmp; do sudo_on h3 mount -t tmpfs -o noexec tmpfs "$folder"; done
expect_exit 2 dtool run --runs_on h3 -- true
expect_error 'dtool-host cannot be put on it: no folder was found in which programs may be put and run'
expect_exit 2 dtool run --runs_on "$DTOOL_LAB_HOSTS" -- true
expect_error 'nothing was started'

# What crossed, with times and without secrets.
expect_exit 0 dtool run --trace "$work/trace" --runs_on h1,h2 -- true
grep -qE '^ +[0-9.]+ asked StartRequest\(' "$work"/trace/*_h1.trace || fail 'the start is not in the trace'
grep -qE '^ +[0-9.]+ came  CheckReply\(' "$work"/trace/*_h2.trace || fail 'the answer to the check is not in the trace'
token=$(on h1 sh -c 'cat /root/.dtool/runs/true_*/machine0/token')
expect_equal 32 "${#token}"
! grep -qF "$token" "$work"/trace/* || fail 'the token is in the trace'
expect_equal 700 "$(stat -c %a "$work/trace")"
end_all
touch file
expect_exit 2 dtool run --trace file --runs_on h1 -- true
expect_error '^dtool: --trace: nothing can be written into the folder file$'

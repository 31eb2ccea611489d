#!/usr/bin/env bash
# dtool brings its program to a host with the first request that needs it, once for each content, where programs may run and nobody else
# may write; `dtool command` leaves nothing there.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3 --private_tmp
touch code
where_it_is() { on "$1" sh -c "find /root/.dtool/host /var/tmp /tmp -name dtool-host -type f 2>/dev/null; true"; }
start_on() { expect_exit 0 dtool run --json --runs_on "$1" -- true; }
end_all() { expect_exit 0 dtool kill --all --yes; }

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
end_all

# A home folder from which nothing runs; and before dtool came, another user has taken the name that it would take.
on h2 sh -c 'mkdir -p /root/.dtool && mount -t tmpfs -o noexec tmpfs /root/.dtool'
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
on h3 sh -c 'mkdir -p /root/.dtool && for d in /root/.dtool /var/tmp /tmp; do mount -t tmpfs -o noexec tmpfs $d; done'
expect_exit 1 dtool run --runs_on h3 -- true
expect_error 'dtool-host cannot be put on it: no folder was found in which programs may be put and run'
expect_exit 1 dtool run --runs_on "$DTOOL_LAB_HOSTS" -- true
expect_error 'what had been started was ended again|something may still run'

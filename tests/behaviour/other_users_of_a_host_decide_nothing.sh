#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Another user of a host, without any right, tries to take the coordinator's port, listens there if its holder was killed, answers, floods it,
# and gives processes odd names: nothing of that is run anywhere, ends a run, delays it, or is answered; the run's token is seen by nobody.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program setpriv
as_root
lab 2 --private_tmp

run_folder() { echo "/root/.dtool/runs/$run_id"; }
supervision_of() { on $(($1 + 1)) cat "$(run_folder)/machine$1/supervision" 2>/dev/null; }
is_supervised() { [[ $(supervision_of 1) == ok ]]; }
states() { { dtool status "$run_id" --json 2>/dev/null || true; } | /usr/bin/python3 -c 'import json, sys; print(*[m["state"] for m in json.load(sys.stdin)["machines"]])'; }
has_ended() { [[ $(states) != *running* ]]; }
as_nobody() { sudo_on "$1" setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "${@:2}"; }
do_on() { on "$1" sh -c 'echo "$1" > ~/do.new && mv ~/do.new ~/do' sh "$2"; }
tmp=() # of the hosts
for host in 1 2; do
  on "$host" chmod 1777 /tmp
  tmp[host]=$DTOOL_LAB_FOLDER/host$host/tmp
done

# ---- a process whose name is a number's index to bash: dtool looks at all processes when it ends a command
printf '#!/bin/sh\ntouch /root/owned\n' >"${tmp[2]}/w"
chmod 755 "${tmp[2]}/w"
cat >"${tmp[2]}/named.py" <<'END'
import time
open("/proc/self/comm", "w").write(" 1 a[`/tmp/w`]\n")
open("/tmp/named", "w")
time.sleep(600)
END
as_nobody 2 /usr/bin/python3 /tmp/named.py &
at_end "kill $!"
eventually 10 on 2 test -e /tmp/named
expect_exit 1 dtool command --timeout 1 --runs_on h2 --command 'sleep 60'
on 2 test ! -e /root/owned || fail 'the name of a process of another user was run as a command'

# ---- a thief of the coordinator's port: what is to listen there comes late
cat >"$DTOOL_LAB_FOLDER/host1/root/wrapper" <<'END'
#!/bin/bash
# In place of screen: the session, which is to listen at a port, waits until the thief has tried to take it.
if [[ -e supervise && ! -e /tmp/port ]]; then
  run=$(basename "$(dirname "$PWD")")
  while [[ -e ~/unheld ]] && pkill -KILL -f "dtool-host hold /root/.dtool/runs/$run "; do sleep 0.05; done
  sed -n 's/^coordinator .* //p' supervise > /tmp/port.new
  chmod 644 /tmp/port.new && mv /tmp/port.new /tmp/port
  until [ -e /tmp/stolen ]; do sleep 0.05; done
fi
exec /root/screen "$@"
END
on 1 bash -c 'chmod 755 ~/wrapper && cp -p "$(readlink -f /usr/bin/screen)" ~/screen && mount --bind ~/wrapper "$(readlink -f /usr/bin/screen)"'
cat >"${tmp[1]}/thief.py" <<'END'
import os, socket, threading, time
while not os.path.exists("/tmp/port"):
    time.sleep(0.02)
port = int(open("/tmp/port").read())
heard = open("/tmp/heard", "ab", buffering=0)
listener = None
for family, address in (socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
    for options in [], [socket.SO_REUSEADDR], [socket.SO_REUSEPORT], [socket.SO_REUSEADDR, socket.SO_REUSEPORT]:
        try:
            tried = socket.socket(family)
            if family == socket.AF_INET6:
                tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            for option in options:
                tried.setsockopt(socket.SOL_SOCKET, option, 1)
            tried.bind((address, port))
            tried.listen(200)
            listener = listener or tried
            open("/tmp/bound", "w")
        except OSError:
            pass
open("/tmp/stolen", "w")
owned = "a[$(touch${IFS}/root/owned)]"
def serve(peer, number):
    peer.settimeout(3)
    try:
        while said := peer.recv(65536):
            heard.write(said)
            answers = [f"{owned} run 0 1".encode() * 9, said, said[:48], said * 9, os.urandom(48), b"\0" * 4096, b"x" * 100000,
                       b"\0\x1b]0;x\a" * 100]
            peer.sendall(answers[number % len(answers)])
            if number % len(answers) == 7:
                open("/tmp/all_said", "w")
    except OSError:
        pass
number = 0
while listener:
    peer, _ = listener.accept()
    threading.Thread(target=serve, args=(peer, number), daemon=True).start()
    number += 1
END
begin_thief() {
  as_nobody 1 /usr/bin/python3 /tmp/thief.py &
  at_end "kill $! 2> /dev/null"
}
cat >program.sh <<'END'
until [ -e ~/do ]; do sleep 0.1; done
. ~/do
END

# The port is held: the thief does not get it, and the run is supervised.
begin_thief
expect_exit 0 dtool run --json --runs_on h1,h2 --extra_tag held -- bash program.sh
run_id=$(json 'd["run_id"]')
on 1 test -e /tmp/stolen || fail 'no thief came'
on 1 test ! -e /tmp/bound || fail 'another user took the port between the check and the start'
eventually 20 is_supervised
expect_equal ok "$(supervision_of 0)"
! pgrep -f "dtool-host hold $(run_folder) " || fail 'the holder of the port has outlived the start'
do_on 2 'echo sick; exit 7'
eventually 30 has_ended
expect_exit 1 dtool status "$run_id"
expect_output '^cause: rank 1 on machine 1 \(h2\) ended with exit code 7: sick$'
expect_exit 0 dtool kill "$run_id" --yes --delete --grace 0.5

# Its holder was killed: the thief gets the port, and that is all.
on 1 touch /root/unheld
on 1 rm -f /tmp/port /tmp/stolen
on 2 rm -f /root/do
begin_thief
expect_exit 0 dtool run --json --runs_on h1,h2 -- bash program.sh
run_id=$(json 'd["run_id"]')
token=$(on 2 cat "$(run_folder)/machine1/token")
on 1 test -e /tmp/bound || fail 'the thief did not get a port that nobody held'
all_is_said() { on 1 test -e /tmp/all_said || on 2 test -e /root/owned; }
eventually 60 all_is_said
on 2 test ! -e /root/owned || fail 'what the thief of a port said was run as a command'
is_named() { supervision_of 1 | grep -q 'does not prove that it is the session on machine 0$' && supervision_of 0 | grep -q 'cannot listen on port'; }
eventually 20 is_named
expect_exit 0 dtool status "$run_id"
expect_output '^not supervised: .*h2.* does not prove that it is the session on machine 0'
expect_output '^not supervised: .*h1.* cannot listen on port [0-9]+: Address already in use'
expect_no_output '^supervised by'
expect_exit 0 dtool logs "$run_id"
expect_output 'dtool: the run is not supervised, and a failure may not end it: cannot listen on port'
! grep -q "$token" "${tmp[1]}/heard" || fail 'the token was said to the thief of a port'
# The run goes on, and ends well.
for host in 1 2; do do_on "$host" 'exit 0'; done
eventually 30 has_ended
expect_exit 0 dtool status "$run_id"
on 2 test ! -e /root/owned || fail 'what the thief of a port said was run as a command'
expect_exit 0 dtool kill "$run_id" --yes --delete --grace 0.5

# ---- strangers at the coordinator's port, from both hosts: noise, a lot of it, nothing, hundreds of connections that are held
cat >"$work/strangers.py" <<'END'
import os, select, socket, sys, time
address, port = sys.argv[1].rsplit(":", 1)
words = [os.urandom(200) + b"\n", os.urandom(524288), b"", b"dtool 1\n", b"\n", b"dtool 1\n" + b"\1" + b"\0" * 55, b"dtool 1\n" + os.urandom(5000),
         b"GET / HTTP/1.0\r\n\r\n", b"a[$(touch${IFS}/root/owned)] 1 0 running 0 \n"]
answered, held, count = 0, [], 0
open("/tmp/begun", "w")
while not os.path.exists("/tmp/enough"):
    try:
        one = socket.create_connection((address, int(port)), timeout=1)
        one.setblocking(False)
        held.append(one)
        if count > 300:  # the first ones say nothing
            one.send(words[count % len(words)])
    except OSError:
        time.sleep(0.01)
    count += 1
    if len(held) > 800:
        held.pop(0).close()
    for each in select.select(held, [], [], 0)[0]:
        try:
            said = each.recv(65536)
            answered += len(said)
        except OSError:
            said = b""
        if not said:
            held.remove(each)
open("/tmp/answered.new", "w").write(f"{answered} {count}\n")
os.rename("/tmp/answered.new", "/tmp/answered")
END

begin_strangers() {  # $1: address and port, $2: seconds of flood before this goes on
  local host
  for host in $strangers_on; do
    cp "$work/strangers.py" "${tmp[host]}/strangers.py"
    rm -f "${tmp[host]}"/{enough,answered,begun}
    as_nobody "$host" bash -c 'ulimit -n 1000; exec nice /usr/bin/python3 /tmp/strangers.py "$1"' strangers "$1" &
    at_end "kill $! 2> /dev/null"
  done
  for host in $strangers_on; do eventually 20 on "$host" test -e /tmp/begun; done
  sleep "$2"
}

expect_no_stranger_was_answered() {
  local host answered count
  for host in $strangers_on; do
    touch "${tmp[host]}/enough"
    eventually 20 on "$host" test -e /tmp/answered
    read -r answered count <"${tmp[host]}/answered"
    expect_equal 0 "$answered"
    ((count > 300)) || fail "the strangers on host $host came $count times only"
  done
}

strangers_on='1 2'
for host in 1 2; do on "$host" rm -f /root/do; done
expect_exit 0 dtool run --json --runs_on h1,h2 --extra_tag flooded -- bash program.sh
run_id=$(json 'd["run_id"]')
where=$(json 'd["coordinator"]')
eventually 20 is_supervised
begin_strangers "$where" 8 # the kernel may keep those that say nothing from a server for some seconds
# A report gets through, and so does the decision on it: the failure of machine 1 ends machine 0's part.
do_on 2 'echo sick; exit 7'
eventually 30 has_ended
expect_exit 1 dtool status "$run_id"
expect_output '^cause: rank 1 on machine 1 \(h2\) ended with exit code 7: sick$'
expect_no_stranger_was_answered
expect_exit 0 dtool kill "$run_id" --yes --delete --grace 0.5

# A run whose port is flooded before it listens there is supervised all the same.
for host in 1 2; do on "$host" rm -f /root/do; done
on 1 rm /root/unheld
on 1 rm -f /tmp/port /tmp/stolen
timeout 100 "$DTOOL" run --json --runs_on h1,h2 --extra_tag early -- bash program.sh >"$out" 2>"$err" </dev/null &
waiting=$!
eventually 30 on 1 test -e /tmp/port
begin_strangers "${where%:*}:$(on 1 cat /tmp/port)" 2
touch "${tmp[1]}/stolen"
expect_ended 0 "$waiting" 'dtool run'
run_id=$(json 'd["run_id"]')
eventually 20 is_supervised
do_on 2 'echo sick; exit 7'
eventually 30 has_ended
expect_exit 1 dtool status "$run_id"
expect_output '^cause: rank 1 on machine 1 \(h2\) ended with exit code 7: sick$'
expect_no_stranger_was_answered
expect_exit 0 dtool kill "$run_id" --yes --delete --grace 0.5
sudo_on 1 umount "$(readlink -f /usr/bin/screen)"
on 2 test ! -e /root/owned || fail 'what a stranger said was run as a command'

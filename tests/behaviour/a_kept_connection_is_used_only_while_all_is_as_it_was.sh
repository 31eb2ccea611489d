#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A kept connection that is dead, whose host is no longer trusted or that others could reach is not used: the command connects by itself.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
keeps_connections
command_on() { expect_exit 0 dtool command --runs_on "$1" --command hostname; }
expect_logins() { expect_equal "$1" $(($(logins) - before)); }
warm() {
  command_on "${1:-h[1-3]}"
  before=$(logins)
}

# The keeper was killed: its sockets are dead, and the next one's take their place.
warm
keepers | xargs kill -KILL
command_on 'h[1-3]'
expect_logins 3
command_on 'h[1-3]'
expect_logins 3
# Killed in the middle of a command, it is told, and nothing runs twice.
before=$(logins)
"$DTOOL" command --runs_on h1 --command 'echo begun >>~/begun; sleep 30; echo on' >"$out" 2>"$err" &
pid=$!
eventually 10 on 1 test -s /root/begun
keepers | xargs kill -KILL
expect_ended 1 "$pid"
expect_error 'h1: .*the connection was lost: the process that kept it has ended'
expect_equal 1 "$(on 1 cat /root/begun | wc -l)"

# The host was rebooted, or its sshd's processes were killed.
warm
fault reboot h1
command_on 'h[1-3]'
expect_logins 1
sudo_on 2 pkill -f '^sshd: (root|ann)' || true
command_on 'h[1-3]'
expect_logins 2

# A host that says nothing any more is asked over a new connection, and found to be out of reach.
fault freeze h3
expect_exit 1 dtool command --runs_on 'h[1-3]' --connect_timeout 1 --command hostname
expect_error '^  h3: '
fault thaw h3

# known_hosts no longer has the key, or has another; the file is what counts, however lately it was written.
warm
cp "$HOME/.ssh/known_hosts" "$work/known_hosts"
grep -v '^h1,' "$work/known_hosts" >"$HOME/.ssh/known_hosts"
expect_exit 1 dtool command --runs_on 'h[1-3]' --command hostname
expect_error '^  h1: the host key is not in '
sed "s,^h2\(.*\) [^ ]*\$,h2\1 $(ssh-keygen -q -t ed25519 -N '' -f "$work/other" && cut -d' ' -f2 "$work/other.pub")," "$work/known_hosts" >"$HOME/.ssh/known_hosts"
expect_exit 1 dtool command --runs_on 'h[1-3]' --command hostname
expect_error '^  h2: the host key .* is not the one in '
cp "$work/known_hosts" "$HOME/.ssh/known_hosts"

# Another way to the host, and a key that was replaced, share nothing.
warm
expect_exit 0 dtool command --ssh_cmd 'ssh -o ConnectTimeout=7' --runs_on h1 --command true
expect_logins 0
expect_exit 0 dtool command --ssh_cmd 'ssh -o IdentitiesOnly=no' --runs_on h1 --command true
expect_logins 1
mv "$HOME/.ssh/id_ed25519" "$work/key"
expect_exit 1 dtool command --runs_on h1 --command hostname
expect_error 'was not let in'
mv "$work/key" "$HOME/.ssh/id_ed25519"

# The folder of the sockets is open to others: nothing of it is used, and disconnect says why.
warm
chmod 755 "$HOME/.dtool/connections"
command_on h1
expect_logins 1
expect_exit 2 dtool disconnect
expect_error 'connections .*is not yours alone \(mode 755, user 0\)'
expect_error 'hint: remove it, or chmod 700 it'
chmod 700 "$HOME/.dtool/connections"

# Another user who gets at a socket all the same is not answered.
warm h1
cat >"$work/ask.py" <<'END'
import glob, os, socket, sys
folder, user = sys.argv[1], int(sys.argv[2])
answers = []
os.chdir(folder)  # a socket's address is short
for path in glob.glob("*-*.[0-9]"):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    if user: os.seteuid(user)
    try: s.connect(path)
    except ConnectionRefusedError: continue
    finally: os.seteuid(0)
    try: s.send(b"d"); answers.append(len(s.recv(1000)) > 0)
    except (BrokenPipeError, ConnectionResetError): answers.append(False)
print(answers and any(answers))
END
chmod 711 "$HOME/.dtool/connections"
chmod 666 "$HOME/.dtool/connections/"*.0
expect_equal False "$(/usr/bin/python3 "$work/ask.py" "$HOME/.dtool/connections" 65534)"
chmod 700 "$HOME/.dtool/connections"
expect_equal True "$(/usr/bin/python3 "$work/ask.py" "$HOME/.dtool/connections" 0)"

# A keeper that is stopped is not taken for none.
at_end "keepers | xargs -r kill -CONT"
keepers | xargs kill -STOP
expect_exit 1 dtool disconnect
expect_error "^dtool: .*not answer: pids? .*$(keepers | head -n 1)"
# Nor where many wait for it already.
cat >"$work/wait.py" <<'END'
import os, socket, subprocess, sys
waiting = []
os.chdir(sys.argv[1])  # an address holds 107 characters
for path in os.listdir() * 40:
    waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    waiting[-1].setblocking(False)
    try: waiting[-1].connect(path)
    except OSError: pass
sys.exit(subprocess.call([sys.argv[2], "disconnect"]))
END
expect_exit 1 /usr/bin/python3 "$work/wait.py" "$HOME/.dtool/connections" "$DTOOL"
expect_error '^dtool: .*not answer: pids? '
keepers | xargs kill -CONT
expect_exit 0 dtool disconnect
expect_error "^closed [0-9]+ connection"
expect_exit 0 dtool command --runs_on h1 --command true

# A keeper whose sockets were taken away ends by itself.
rm -r "$HOME/.dtool/connections"
eventually 20 no_keeper_is_left

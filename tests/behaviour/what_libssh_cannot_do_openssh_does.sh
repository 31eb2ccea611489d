#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hosts that want what libssh cannot do are reached over the user's own ssh: a ProxyCommand, Match exec, a host certificate
# authority, an open ControlMaster; a run is started, followed, synced, fetched and ended so; no ssh is left behind.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 3
# A busy machine takes long to start all the programs that a log-in over ssh needs.
keeps() { mkdir -p -m 700 "$HOME/.dtool"; printf '[ssh]\nconnect_timeout = 100\n[connections]\nkeep = %s\n' "$1" >"$HOME/.dtool/config.toml"; }
keeps 0

config=$HOME/.ssh/config
known=$HOME/.ssh/known_hosts
cp "$config" "$work/lab_config"
cp "$known" "$work/lab_known"
h1=$(sed -n 1p "$DTOOL_LAB_FOLDER/hosts") h2=$(sed -n 2p "$DTOOL_LAB_FOLDER/hosts")
prepends() { cat - "$work/lab_config" >"$config"; }
# The ssh processes of this test's home folder, but for the user's own.
programs() { grep -lz "^HOME=$HOME\$" /proc/[0-9]*/environ 2>/dev/null | sed 's,/environ,/comm,' | xargs -r grep -lx ssh 2>/dev/null || true; }
no_program_is_left() { [[ -z $(programs) ]]; }
# What ssh would do from the launcher's side, through a program of its own.
cat >"$work/relay" <<'END'
#!/usr/bin/env python3
import os, socket, sys, threading
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def up():
    while data := os.read(0, 65536): s.sendall(data)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := s.recv(65536): os.write(1, data)
END
chmod +x "$work/relay"

# A ProxyCommand; the other hosts are reached over libssh as ever.
printf 'Host h1\n  ProxyCommand %s %%h %%p\n' "$work/relay" | prepends
expect_exit 0 dtool command --runs_on h1,h2 --command 'echo "$SSH_AUTH_SOCK from $(hostname)"'
expect_output '^h1:  from '
expect_output '^h2:  from '
no_program_is_left || fail "an ssh is left: $(programs)"
expect_exit 1 dtool command --runs_on h1,h2 --command 'exit 255'
expect_error 'h\[1-2\]: .*255'
expect_exit 1 dtool command --runs_on h1 --ssh_program libssh --command true
expect_error 'ProxyCommand .*only the ssh program does'

# Match exec decides.
printf 'Match originalhost gate exec "true"\n  HostName %s\n' "$h2" | prepends
printf '%s,gate %s\n' "$h2" "$(sed -n "s/^h2,[^ ]* //p" "$work/lab_known")" >>"$known"
expect_exit 0 dtool command --runs_on gate --command hostname
expect_output '^gate: lab-.*-2$'

# All a run needs, on one host over ssh and one over libssh.
printf 'Host h1\n  ProxyCommand %s %%h %%p\n' "$work/relay" | prepends
mkdir code
cd code
echo content >file
head -c 3000000 /dev/urandom >large
cat >train.sh <<'END'
mkdir -p "$DTOOL_OUTPUT_DIR"
cp large "$DTOOL_OUTPUT_DIR/"
echo "rank $RANK has $(cat file)"
sleep 1000 &
sleep 1000
END
expect_exit 0 dtool run --json --runs_on h1,h2 -- bash train.sh
id=$(json 'd["run_id"]')
eventually 60 eval 'run dtool logs "$id"; expect_output "rank 0 has content"; expect_output "rank 1 has content"'
expect_exit 0 dtool status "$id"
expect_exit 0 dtool fetch "$id" "$work/fetched"
expect_equal 2 "$(find "$work/fetched" -name large -exec cmp {} large \; -print | wc -l)"
if command -v tmux >/dev/null; then
  pane() { tmux -L "dtool-$$" -f /dev/null "$@"; }
  shows() { pane capture-pane -pJ | grep -Eq -e "$1"; }
  at_end 'pane kill-server 2>/dev/null'
  pane new-session -d -x 100 -y 30 'timeout --signal=KILL 300 bash --norc'
  pane send-keys -l "$DTOOL attach $id --machine 0; echo code=\$?"
  pane send-keys Enter
  eventually 60 shows 'rank 0 has content'
  pane send-keys C-a d
  eventually 60 shows '^code=0'
fi
expect_exit 0 dtool kill --yes --delete "$id"
expect_no_process_with "$id"
no_program_is_left || fail "an ssh is left: $(programs)"
cd ..

# A command that takes too long is ended on the host.
expect_exit 1 dtool command --runs_on h1 --timeout 1 --command 'sleep 98765'
expect_error 'did not end in time'
! on 1 pgrep -f '^sleep 98765' || fail 'the command goes on'

# Kept: the next command logs in no more, until dtool disconnect; and its output is whole.
keeps 300
expect_exit 0 dtool command --runs_on h1 --command true
before=$(logins)
expect_exit 0 dtool command --runs_on h1 --command 'head -c 1000000 /dev/zero | tr "\0" x; echo'
expect_equal 1000005 "$(stat -c %s "$out")"
expect_equal "$before" "$(logins)"
# A master that is stopped is not said to be closed.
mapfile -t stopped < <(programs | tr -cd '0-9\n')
kill -STOP "${stopped[@]}"
at_end 'kill -CONT "${stopped[@]}" 2>/dev/null'
expect_exit 1 dtool disconnect --runs_on h1
expect_error '^dtool: .*not answer: pids? '
expect_no_error 'closed|no connection'
kill -CONT "${stopped[@]}"
expect_exit 0 dtool disconnect --runs_on h1
expect_error 'closed 1 connection: h1'
eventually 20 no_program_is_left
keeps 0

# Unknown and changed keys are refused, whatever the configuration says.
printf 'Host h1\n  StrictHostKeyChecking no\n  ProxyCommand %s %%h %%p\n' "$work/relay" | prepends
: >"$known"
expect_exit 1 dtool command --runs_on h1 --command true
expect_error 'host key is not in'
expect_error 'hint: .*dtool trust --runs_on h1'
expect_equal '' "$(cat "$known")"
sed "s/^h1,[^ ]* \(.*\)/nobody/; s/^h2,[^ ]* /h1,$h1 /" "$work/lab_known" >"$known"
expect_exit 1 dtool command --runs_on h1 --command true
expect_error 'is not the one in'

# ... and trust adds them through the ProxyCommand.
: >"$known"
expect_exit 0 dtool trust --yes --runs_on h1
expect_exit 0 dtool command --runs_on h1 --command true
cp "$work/lab_known" "$known"

# A certificate authority for hosts.
ssh-keygen -q -t ed25519 -N '' -f "$work/authority"
ssh-keygen -q -s "$work/authority" -I h3 -h -n h3,"$(sed -n 3p "$DTOOL_LAB_FOLDER/hosts")" "$DTOOL_LAB_FOLDER/host3/host_key.pub"
fault restart-sshd h3 -o HostCertificate="$DTOOL_LAB_FOLDER/host3/host_key-cert.pub"
printf '@cert-authority * %s\n' "$(cat "$work/authority.pub")" >"$known"
cp "$work/lab_config" "$config"
expect_exit 0 dtool command --runs_on h3 --command true
cp "$work/lab_known" "$known"

# A master of the user's that is open is used, and left open.
printf 'Host h2\n  ControlPath %s/m-%%C\n' "$work" | prepends
ssh -f -N -M -o ControlPersist=yes h2
at_end 'ssh -O exit h2 2>/dev/null'
before=$(logins)
expect_exit 0 dtool command --runs_on h2 --command hostname
expect_output '^h2: lab-.*-2$'
expect_equal "$before" "$(logins)"
ssh -O check h2 2>/dev/null || fail "the user's master is gone"

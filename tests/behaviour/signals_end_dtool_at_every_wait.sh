#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# TERM, and Ctrl-C twice, end dtool wherever it waits: at each wait of its event loop that these commands meet, stalled by name (ssh/machine/reactor.h), and
# where it waits in the system instead, for a reader, a person, a program or a lock. No process is left.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program ssh-agent
lab 5 --behind
fault restart-sshd h5 -o MaxSessions=0  # it takes no session
connects_anew
eval "$(ssh-agent -a "$work/agent")" >/dev/null
at_end "kill $SSH_AGENT_PID"
ssh-add -q "$HOME/.ssh/id_ed25519"
unset SSH_AUTH_SOCK
echo "$(sed -n '/^Host h1$/,/HostName/s/.*HostName //p' "$HOME/.ssh/config") a-name" >"$work/hosts"
mkdir tree large_tree
head -c 300000 /dev/urandom >tree/data
head -c 6000000 /dev/urandom >large_tree/data
ssh-keygen -q -t ed25519 -N secret -f "$work/locked_key"
on h1 sh -c 'cat >>.ssh/authorized_keys' <"$work/locked_key.pub"

# A terminal: answers what ssh asks, leaves an attached session, hands on signals. The others that ask wait for the first answer.
cat >"$work/at_terminal.py" <<'END'
import os, pty, signal, sys, time
pid, terminal = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
for each in signal.SIGINT, signal.SIGTERM:
    signal.signal(each, lambda number, frame: os.kill(pid, number))
said = b""
try:
    while True:
        read = os.read(terminal, 4096)
        os.write(1, read)
        said = (said + read)[-4096:]
        if b"passphrase" in said or b"program runs" in said:
            time.sleep(0.7)
            os.write(terminal, b"secret\n" if b"passphrase" in said else b"\x01d")
            said = b""
except OSError:
    pass
code = os.waitpid(pid, 0)[1]
code = os.waitstatus_to_exitcode(code)
sys.exit(code if code >= 0 else 128 - code)
END
# A server that greets nobody: every second caller gets a word that is no greeting.
cat >"$work/no_greeting.py" <<'END'
import socket, sys, threading, time
server = socket.create_server(("127.0.0.1", 0))
open(sys.argv[1], "w").write(str(server.getsockname()[1]))
def refuse(peer, number):
    try:
        for _ in range(2 if number % 2 else 0):
            peer.sendall(b"not now\r\n")
            time.sleep(0.3)
    except OSError:
        pass  # the caller has gone
    peer.close()
number = 0
while True:
    peer, _ = server.accept()
    threading.Thread(target=refuse, args=(peer, number), daemon=True).start()
    number += 1
END
/usr/bin/python3 "$work/no_greeting.py" "$work/port" &
at_end "kill $!"
eventually 10 test -s "$work/port"

# A run that has left outputs on h1, and one that goes on, on h4.
# shellcheck disable=SC2016
expect_exit 0 dtool run --json --follow --runs_on h1 --no_sync --code_path '~' -- bash -c 'mkdir -p "$DTOOL_OUTPUT_DIR"; head -c 300000 /dev/urandom >"$DTOOL_OUTPUT_DIR/out"'
fetched=$(json 'd["run_id"]')
begin_followed() {
  on h4 rm -f stop
  expect_exit 0 dtool run --json --runs_on h4 --no_sync --code_path '~' -- bash -c 'echo the program runs; until [ -e ~/stop ]; do sleep 0.2; echo; done'
  followed=$(json 'd["run_id"]')
}
begin_followed

# What meets the waits; each in a folder of its own.
scenarios=(direct jump local name agent push mended kept kept_fetch relay follow lost fetch attach no_greeting program program_fetch program_asks program_shares refused program_refused forward input)
meet_direct() { dtool_at command --runs_on h1 --command 'cat; seq 20000; echo told >&2'; }
meet_jump() { dtool_at command --runs_on h2,h3 --command 'seq 1000'; }
meet_local() { dtool_at command --runs_on local --command 'seq 1000'; }
meet_name() { dtool_at command --connect_timeout 60 --ssh_cmd 'ssh -o HostName=no-such-host.invalid' --runs_on h1 --command true; }
meet_agent() { dtool_at command --ssh_cmd "ssh -o IdentityFile=$work/none -o IdentitiesOnly=no -o IdentityAgent=$work/agent" --runs_on h1 --command true; }
meet_push() { dtool_at run --quiet --runs_on h1,h2 --code_path '~'"/push.$BASHPID" -- true; }
meet_mended() {
  on h1 mkdir -p "/root/mended.$1"
  on h1 touch "/root/mended.$1/data"
  dtool_at run --quiet --force --runs_on h1 --code_path '~'"/mended.$1" -- true
}
in_kept_home() {
  export HOME=$work/kept_home
  # The caller that was interrupted before has cost the session.
  env -u DTOOL_TEST_STALL -u DTOOL_TEST_WAITS "$DTOOL" command --runs_on h1 --command true
}
meet_kept() { in_kept_home && dtool_at command --runs_on h1 --command 'seq 1000'; }
meet_kept_fetch() { in_kept_home && dtool_at fetch "$fetched" "$work/kept_fetched.$BASHPID"; }
meet_relay() { cd ../large_tree && dtool_at run --quiet --relay --runs_on h1,h2 --code_path '~'"/relay.$BASHPID" -- true; }
meet_follow() { dtool_at logs -f "$followed"; }
meet_lost() {
  { sleep 2; sudo_on h4 pkill -KILL -f 'sshd: (root|ann)@notty' || true; } &
  dtool_at logs -f "$followed"
}
meet_fetch() { dtool_at fetch "$fetched" "$work/fetched.$BASHPID"; }
meet_attach() { at_terminal attach "$followed" --machine 0; }
meet_no_greeting() { dtool_at command --ssh_cmd "ssh -p $(cat "$work/port") -o HostName=127.0.0.1" --runs_on h1 --command true; }
meet_program() { dtool_at command --ssh_program ssh --runs_on h1 --command 'cat; seq 20000; echo told >&2'; }
meet_program_fetch() { dtool_at fetch --ssh_program ssh "$fetched" "$work/program_fetched.$BASHPID"; }
meet_program_asks() { at_terminal command --ssh_program ssh --ssh_cmd "ssh -o IdentityFile=$work/locked_key -o IdentitiesOnly=yes" --runs_on h1 --command true; }
meet_program_shares() { at_terminal command --ssh_program ssh --ask once --ssh_cmd "ssh -o IdentityFile=$work/locked_key -o IdentitiesOnly=yes" --runs_on "h1,$log_in_user@h1" --command true; }
meet_refused() { dtool_at command --runs_on h5 --command true; }
meet_program_refused() { dtool_at command --ssh_program ssh --runs_on h5 --command true; }
meet_input() { dtool_at command --stdin --runs_on h1 --command 'head -c 9' < <(exec yes); }
meet_forward() {
  local port=$((20000 + BASHPID % 10000)) launcher=$BASHPID
  { for _ in 1 2 3 4; do sleep 0.5; head -c 3 <"/dev/tcp/127.0.0.1/$port" || true; done; kill "$launcher"; } >/dev/null 2>&1 &
  dtool_at forward h1 "$port:22"
}
cp -a "$HOME" "$work/kept_home"
rm -f "$work/kept_home/.dtool/config.toml"
dtool_at() { exec env --default-signal=INT "$DTOOL" "$@"; }
at_terminal() { exec env --default-signal=INT TERM=xterm /usr/bin/python3 "$work/at_terminal.py" "$DTOOL" "$@"; }

# Runs scenario $1 with wait $2 stalled (none: -), the names of the waits it meets in the file $3.
start() {
  (
    cd tree
    # shellcheck disable=SC2030
    [[ $2 == - ]] || export DTOOL_TEST_STALL=$2
    export DTOOL_TEST_WAITS=9
    "meet_$1" "${2//[^a-z0-9]/_}" 9>"$3" >"$3.out" 2>"$3.err" </dev/null
  ) &
}

declare -A scenario_of=()
meet_waits() {
  local pid wait
  start "$1" - "$work/waits.$1"
  pid=$!
  if [[ $1 == follow || $1 == lost ]]; then
    sleep 6
    on h4 touch stop
  fi
  wait "$pid" || [[ $1 =~ ^(name|no_greeting|program_shares|refused|program_refused|forward)$ ]] || fail "$1: $(cat "$work/waits.$1.err" "$work/waits.$1.out")"
  while read -r wait; do scenario_of[$wait]=${scenario_of[$wait]:-$1}; done <"$work/waits.$1"
  [[ ! $1 =~ ^(follow|lost)$ ]] || begin_followed
}

# Every wait of the sources is met, but these:
# - in the keeper, which is no command, and on a kernel without pidfd
# - where a socket or a queue is full, the SSH server exchanges keys anew, or an agent is slow (tests of their own do that)
# - for what has usually ended by then, or is rare
excused='^(keeper|offered_session|agent)\.cpp |^process\.cpp .*kLookAgain|^(master|fd_bytes)\.cpp .*For::writable|^master\.cpp .*milliseconds\(10\)'
excused+='|^exchange\.cpp .*session_\.wait\(deadline_\)|^asker\.cpp .*kAskSlice|^masters\.cpp .*sleep\(pause\)'
excused+='|^(local|kept)_connection\.cpp .*pumps\.join|^serving_program\.cpp .*(writing\.join|started->changed)|^port_forward\.cpp .*(is_connected_|kAfterFault)|^remote_shell\.cpp .*(milliseconds\(20\)|group\.join)'
# Each as `FILE LINE TEXT`.
waits_of_sources() {
  (cd "$source_folder" && find ssh -name '*.cpp' ! -path '*/host/*' -exec grep -nHE 'co_await .*([.>](wait|wait_for|sleep|join|repeat)|[ (]wait)\(' {} +) |
    grep -vE 'process\.wait|file, line' | sed -E 's,^[^:]*/([^/:]+):([0-9]+):,\1 \2 ,'
}
find_unmet() {
  local file line text
  unmet=()
  while read -r file line text; do
    [[ -n ${scenario_of[$file:$line]:-} || "$file $text" =~ $excused ]] || unmet+=("$file:$line")
  done < <(waits_of_sources)
}
# What usually has to be waited for may be there already.
for round in 1 2 3; do
  for scenario in "${scenarios[@]}"; do meet_waits "$scenario"; done
  find_unmet
  ((${#unmet[@]} > 0)) || break
done
((${#unmet[@]} == 0)) || fail "no scenario meets these waits in $round rounds: ${unmet[*]}"
((${#scenario_of[@]} >= 30)) || fail "only ${#scenario_of[@]} waits were met: ${!scenario_of[*]}"

# One stalled wait and one way to end it. A second is dtool's promise. A step of the loop takes longer where the machine is busy.
ends_at() {
  local wait=$1 signals=$2 file="$work/${1//[^a-z0-9]/_}.${2// /}" pid code=0 step tries
  for ((tries = 0; tries < 3; tries++)); do
    start "${scenario_of[$wait]}" "$wait" "$file"
    pid=$!
    # A wait that is met in some runs only, as where a socket is full, may not be met now; and what follows a log does not end then.
    for ((step = 0; step < 300; step++)); do
      ! grep -qx "$wait" "$file" 2>/dev/null || break 2
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill "$pid" 2>/dev/null || true
    wait "$pid" || true
  done
  ((tries < 3)) || { echo "$wait" >>"$work/missed"; return; }
  for signal in $signals; do
    kill "-$signal" "$pid" 2>/dev/null || true
    sleep 0.2
  done
  for ((step = 0; step < 20; step++)); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  ((step < 20)) || fail "stalled at $wait of ${scenario_of[$wait]} it has not ended 2 s after $signals"
  wait "$pid" || code=$?
  # A host that answered nevertheless, and a wait that nobody depends on, let a command end well.
  [[ $code =~ ^(130|143|0|1|2)$ ]] || fail "stalled at $wait of ${scenario_of[$wait]} it ended with $code after $signals: $(cat "$file.err")"
  echo "$code" >>"$work/codes"
}
running=0
for wait in "${!scenario_of[@]}"; do
  for signals in TERM 'INT INT'; do
    ends_at "$wait" "$signals" &
    trials+=($!)
    ((++running % 8)) || { for trial in "${trials[@]}"; do wait "$trial"; done; trials=(); }
  done
done
for trial in "${trials[@]}"; do wait "$trial"; done
# A wait that depends on chance may be missed; one that has another name now is missed each time.
touch "$work/missed"
(($(wc -l <"$work/missed") <= 8)) || fail "these waits were met once and then never: $(sort "$work/missed" | uniq -c | xargs)"
(($(grep -c '^130$' "$work/codes") * 2 > $(wc -l <"$work/codes"))) || fail "few trials were stalled: $(sort "$work/codes" | uniq -c | xargs)"

# In the system. A reader that takes nothing:
ends_with() {
  local wanted=$1 pid=$2 code=0
  eventually 5 bash -c "! kill -0 $pid"  # a first Ctrl-C has three seconds
  wait "$pid" || code=$?
  expect_equal "$wanted" "$code"
}
mkfifo "$work/fifo"
for signals in TERM INT 'INT INT'; do
  exec 8<>"$work/fifo"
  env --default-signal=INT "$DTOOL" command --runs_on h1,local --command 'seq 300000' >"$work/fifo" 2>"$err" &
  pid=$!
  eventually 20 bash -c "head -c 6 </proc/$$/fd/8 | grep -q ."
  sleep 1
  for signal in $signals; do
    kill "-$signal" "$pid"
    sleep 0.2
  done
  case $signals in TERM) ends_with 143 "$pid" ;; *) ends_with 130 "$pid" ;; esac
  exec 8>&-
done

# A program of this machine.
mkdir "$work/bin" repository
git init -q repository
printf '#!/bin/bash\necho $$ >%q\nexec sleep 3094\n' "$work/git" >"$work/bin/git"
chmod +x "$work/bin/git"
for signal in TERM INT; do
  rm -f "$work/git"
  (cd repository && PATH=$work/bin:$PATH exec env --default-signal=INT "$DTOOL" run --runs_on h1 -- true >"$out" 2>"$err") &
  pid=$!
  eventually 20 test -s "$work/git"
  kill "-$signal" "$pid"
  case $signal in TERM) ends_with 143 "$pid" ;; *) ends_with 130 "$pid" ;; esac
  eventually 5 bash -c "! kill -0 $(cat "$work/git")"
done

# A person who says nothing, at a terminal.
expect_exit 0 dtool run --runs_on h1 --no_sync --code_path '~' -- sleep 3095
for signal in TERM INT; do
  /usr/bin/python3 - "$signal" "$DTOOL" command --command true >"$out" 2>"$err" <<'END'
import os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(sys.argv[2], sys.argv[2:])
text = b""
while b"[y/N]" not in text:
    text += os.read(terminal, 1000)
number = signal.Signals["SIG" + sys.argv[1]]
os.kill(pid, number)
signal.alarm(20)
_, status = os.waitpid(pid, 0)
assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number, status
END
done
expect_exit 0 dtool kill --all --yes --delete

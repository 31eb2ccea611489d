#!/usr/bin/env bash
# TERM, and Ctrl-C twice, end dtool wherever it waits: at each wait of its event loop that these commands meet, stalled by name (ssh/machine/reactor.h), and
# where it waits in the system instead, for a reader, a person, a program or a lock. No process is left.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program ssh-agent
lab 3 --behind
connects_anew
eval "$(ssh-agent -a "$work/agent")" >/dev/null
at_end "kill $SSH_AGENT_PID"
ssh-add -q "$HOME/.ssh/id_ed25519"
unset SSH_AUTH_SOCK
echo "$(sed -n '/^Host h1$/,/HostName/s/.*HostName //p' "$HOME/.ssh/config") a-name" >"$work/hosts"
mkdir tree
head -c 300000 /dev/urandom >tree/data

# What meets the waits; each in a folder of its own.
scenarios=(direct jump local name agent push rsync kept)
meet_direct() { dtool_at command --runs_on h1 --command 'cat; seq 20000; echo told >&2'; }
meet_jump() { dtool_at command --runs_on h2,h3 --command 'seq 1000'; }
meet_local() { dtool_at command --runs_on local --command 'seq 1000'; }
meet_name() { dtool_at command --connect_timeout 60 --ssh_cmd 'ssh -o HostName=no-such-host.invalid' --runs_on h1 --command true; }
meet_agent() { dtool_at command --ssh_cmd "ssh -o IdentityFile=$work/none -o IdentitiesOnly=no -o IdentityAgent=$work/agent" --runs_on h1 --command true; }
meet_push() { dtool_at run --quiet --runs_on h1,h2 --code_path '~'"/push.$BASHPID" -- true; }
meet_rsync() {
  on h1 mkdir -p "/root/rsync.$1"
  on h1 touch "/root/rsync.$1/data"
  dtool_at run --quiet --force --runs_on h1 --code_path '~'"/rsync.$1" -- true
}
meet_kept() {
  export HOME=$work/kept_home
  # The caller that was interrupted before has cost the session.
  env -u DTOOL_TEST_STALL -u DTOOL_TEST_WAITS "$DTOOL" command --runs_on h1 --command true
  dtool_at command --runs_on h1 --command 'seq 1000'
}
cp -a "$HOME" "$work/kept_home"
rm -f "$work/kept_home/.dtool/config.toml"
dtool_at() { exec env --default-signal=INT "$DTOOL" "$@"; }

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
for scenario in "${scenarios[@]}"; do
  start "$scenario" - "$work/waits.$scenario"
  wait $! || [[ $scenario == name ]] || fail "$scenario: $(cat "$work/waits.$scenario.err")"
  while read -r wait; do scenario_of[$wait]=${scenario_of[$wait]:-$scenario}; done <"$work/waits.$scenario"
done
((${#scenario_of[@]} >= 15)) || fail "only ${#scenario_of[@]} waits were met: ${!scenario_of[*]}"

# One stalled wait and one way to end it.
ends_at() {
  local wait=$1 signals=$2 file="$work/${1//[^a-z0-9]/_}.${2// /}" pid code=0
  start "${scenario_of[$wait]}" "$wait" "$file"
  pid=$!
  # A wait that is met in some runs only, as where a socket is full, was not stalled.
  eventually 60 bash -c "grep -qx '$wait' '$file' || ! kill -0 $pid"
  for signal in $signals; do
    kill "-$signal" "$pid" 2>/dev/null || true
    sleep 0.2
  done
  eventually 20 bash -c "! kill -0 $pid"
  wait "$pid" || code=$?
  grep -qx "$wait" "$file" || return 0
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
(($(grep -c '^130$' "$work/codes") * 2 > $(wc -l <"$work/codes"))) || fail "few trials were stalled: $(sort "$work/codes" | uniq -c | xargs)"

# In the system. A reader that takes nothing:
ends_with() {
  local wanted=$1 pid=$2 code=0
  eventually 20 bash -c "! kill -0 $pid"
  wait "$pid" || code=$?
  expect_equal "$wanted" "$code"
}
mkfifo "$work/fifo"
for signals in TERM 'INT INT'; do
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
(cd repository && PATH=$work/bin:$PATH exec env --default-signal=INT "$DTOOL" run --runs_on h1 -- true >"$out" 2>"$err") &
pid=$!
eventually 20 test -s "$work/git"
kill -TERM "$pid"
ends_with 143 "$pid"
eventually 5 bash -c "! kill -0 $(cat "$work/git")"

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
expect_exit 0 dtool kill --all --yes

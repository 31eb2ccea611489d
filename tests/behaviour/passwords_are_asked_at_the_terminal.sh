#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A host that wants a password gets it from the user's terminal, with the host's name, hidden, once per host or once for all;
# without a terminal nobody is asked; an interrupt in the middle of it leaves no ssh behind.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 3
# A busy machine takes long to start all the programs that a log-in over ssh needs.
keeps() { mkdir -p -m 700 "$HOME/.dtool"; printf '[ssh]\nconnect_timeout = 100\n[connections]\nkeep = %s\n' "$1" >"$HOME/.dtool/config.toml"; }
keeps 0

config=$HOME/.ssh/config
sed -i '/Identit/d' "$config"
rm "$HOME/.ssh/id_ed25519"
hash=$(openssl passwd -6 'open sesame')
for i in 1 2; do
  on $i bash -c 'sed "s,^root:[^:]*:,root:$1:," /etc/shadow >/root/shadow; mount --bind /root/shadow /etc/shadow' bash "$hash"
  fault restart-sshd h$i -o PasswordAuthentication=yes -o PermitRootLogin=yes
done
# The third asks through PAM, by keyboard-interactive.
on 3 bash -c 'sed "s,^root:[^:]*:,root:$1:," /etc/shadow >/root/shadow; mount --bind /root/shadow /etc/shadow
  printf "auth required pam_unix.so\naccount required pam_unix.so\n" >/root/pam; mount --bind /root/pam /etc/pam.d/sshd' bash "$hash"
fault restart-sshd h3 -o UsePAM=yes -o PasswordAuthentication=no -o KbdInteractiveAuthentication=yes -o PermitRootLogin=yes

# usage: typist PATTERN ANSWER... -- COMMAND: in a terminal of its own; each time the pattern comes the next answer is typed, or
# the signal that it names is sent. Says what the terminal showed, and gives the command's exit code.
cat >"$work/typist" <<'END'
#!/usr/bin/python3
import os, pty, re, signal, sys, termios, time
pattern, rest = sys.argv[1], sys.argv[2:]
answers, command = rest[:rest.index('--')], rest[rest.index('--') + 1:]
pid, fd = pty.fork()
if pid == 0: os.execvp(command[0], command)
seen, at = '', 0
while True:
    try: data = os.read(fd, 4096)
    except OSError: break
    if not data: break
    seen += data.decode(errors='replace')
    match = re.search(pattern, seen[at:])
    if match and answers:
        at += match.end()
        answer = answers.pop(0)
        if answer.startswith('later '): time.sleep(5); answer = answer[6:]
        if answer.startswith('SIG'): os.kill(pid, getattr(signal, answer))
        elif answer == '^C': os.write(fd, b'\x03')
        else: os.write(fd, answer.encode() + b'\n')
print(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
chmod +x "$work/typist"
export NO_COLOR=1
types() { timeout 150 "$work/typist" "$@"; }
programs() { grep -lz "^HOME=$HOME\$" /proc/[0-9]*/environ 2>/dev/null | sed 's,/environ,/comm,' | xargs -r grep -lx ssh 2>/dev/null || true; }
no_program_is_left() { [[ -z $(programs) ]]; }

# Once per host, each with its name; what is typed does not show.
expect_exit 0 types 'asks: .*assword: ' 'open sesame' 'open sesame' -- "$DTOOL" command --ssh_program ssh --runs_on h1,h3 --command 'hostname'
expect_output 'h1 asks: .*assword:'
expect_output 'h3 asks: .*assword:'
expect_output 'h1: lab-.*-1'
expect_output 'h3: lab-.*-3'
expect_no_output 'sesame'
no_program_is_left || fail "an ssh is left: $(programs)"

# While a question stands there, no line of progress is drawn over it.
expect_exit 0 types 'asks: .*assword: ' 'later open sesame' -- bash -c 'stty cols 100 rows 30; exec "$@"' bash "$DTOOL" check --no_trainer --ssh_program ssh --runs_on h1
expect_no_output 'waiting for'

# Once for all whose user and prompt are the same.
expect_exit 0 types 'asks: .*assword: ' 'open sesame' -- "$DTOOL" command --ssh_program ssh --ask once --runs_on h1,h2 --command 'hostname'
expect_equal 1 "$(grep -c 'asks: ' "$out")"

# The configuration alone is enough where there is no key. A wrong answer is named.
printf 'Host h1\n  PasswordAuthentication yes\n  NumberOfPasswordPrompts 2\n' | cat - "$config" >"$work/config" && cp "$work/config" "$config"
expect_exit 1 types 'asks.*: .*assword: ' 'wrong' 'wrong too' -- "$DTOOL" command --runs_on h1 --command true
expect_output 'asks again, the answer was not taken'
expect_output 'user root was not let in by ssh after 2 of your answers: .*Permission denied'

# Without a terminal nobody is asked.
expect_exit 1 setsid "$DTOOL" command --runs_on h1 --command true
expect_error 'h1: the host asks: .*assword: and there is no terminal'
expect_error 'hint: .*terminal'

# An interrupt, at the prompt and while ssh waits for a host that says nothing.
for ending in '^C' SIGINT SIGTERM; do
  expect_exit 130 types 'asks: .*assword: ' "$ending" -- "$DTOOL" command --runs_on h1 --command true
  eventually 10 no_program_is_left
done
fault freeze h1
for ending in INT TERM; do
  "$DTOOL" command --ssh_program ssh --runs_on h1 --command true >"$out" 2>"$err" &
  pid=$!
  eventually 60 eval '[[ -n $(programs) ]]'
  kill -$ending $pid
  expect_ended 130 $pid 'an interrupted command'
  eventually 10 no_program_is_left
done
fault thaw h1

# A password is in no argument, variable or file of the launcher's.
! grep -rqs 'open sesame' "$HOME/.dtool" || fail 'a password is in a file'

# All of a run: kept connections ask once and never again.
keeps 300
echo content >file
expect_exit 0 types 'asks: .*assword: ' 'open sesame' 'open sesame' -- "$DTOOL" run --runs_on h1,h3 --ssh_program ssh -- sleep 1000
expect_exit 0 dtool list --json
id=$(json 'd["runs"][0]["run_id"]')
expect_exit 0 dtool status "$id"
expect_exit 0 dtool kill --yes --delete "$id"
expect_no_process_with "$id"
expect_exit 0 dtool disconnect
eventually 20 no_program_is_left

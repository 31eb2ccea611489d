#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool command --sudo` asks for one password, once, and gives it to the hosts whose sudo asks for it, and to nothing else. A wrong one
# is tried once, on one host. A timeout ends root's processes, too.
source "$(dirname "$0")/harness.sh"
needs_isolation
for program in sudo openssl; do needs_program $program; done
lab 3

export NO_COLOR=1
secret='right one'
# $1: the host, $2: the user's password there, $3: what sudo allows.
gives_sudo() {
  # shellcheck disable=SC2016
  sudo_on "$1" sh -c 'mkdir -p /root/of_root; cd "$(mktemp -d /root/of_root/XXXX)"; sed "s|^ann:[^:]*|ann:$1|" /etc/shadow >shadow; printf "%s\n" "$2" "Defaults logfile=/root/of_root/log" >sudoers
    printf "auth required pam_unix.so\naccount required pam_unix.so\n" >pam; chmod 440 sudoers shadow pam
    mount --bind shadow /etc/shadow; mount --bind sudoers /etc/sudoers; mount --bind pam /etc/pam.d/sudo' sh "$(openssl passwd -6 "$2")" "$3"
}
gives_sudo 1 "$secret" 'ann ALL=(ALL:ALL) ALL'
gives_sudo 2 "$secret" 'ann ALL=(ALL:ALL) ALL'
gives_sudo 3 another 'ann ALL=(ALL:ALL) NOPASSWD: ALL'
failures() { sudo_on "$1" sh -c 'grep -c "incorrect password" /root/of_root/log || true'; }

# usage: typist ANSWER COMMAND...: in a terminal of its own; the answer is typed when sudo's question comes. ^C: Ctrl-C is.
cat >"$work/typist" <<'END'
#!/usr/bin/python3
import os, pty, re, sys, termios
answer, command = sys.argv[1], sys.argv[2:]
pid, fd = pty.fork()
if pid == 0: os.execvp(command[0], command)
seen = ''
while True:
    try: data = os.read(fd, 4096)
    except OSError: break
    if not data: break
    seen += data.decode(errors='replace')
    if answer and 'password of sudo' in seen:
        os.write(fd, b'\x03' if answer == '^C' else answer.encode() + b'\n')
        answer = ''
sys.stdout.write(re.sub(r'\r\n|\r|\x1b\[[0-9;]*[A-Za-z]', '\n', seen))
print('typing is shown' if termios.tcgetattr(fd)[3] & termios.ECHO else 'typing is hidden')
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(code if code >= 0 else 128 - code)
END
chmod 755 "$work/typist"
typed() { "$work/typist" "$@"; }

# Nobody can be asked here; a host that asks for nothing needs nobody.
expect_exit 2 setsid -w "$DTOOL" command -w h1,h3 --sudo -- id -u
expect_error 'sudo asks for a password on h1, and there is no terminal to ask for it'
expect_exit 0 setsid -w "$DTOOL" command -w h3 --sudo -- id -u
expect_output '^h3: 0$'

# One question for all. The command's input is its own, and no argument or variable has the password.
expect_exit 0 typed "$secret" "$DTOOL" command -w h1,h2,h3 --sudo -- \
  'id -u; echo "rest: $(cat)"; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr "\0" "\n" | grep -c "[r]ight one"; true'
for host in h1 h2 h3; do
  expect_output "^$host: 0\$"
  expect_output "^$host: rest: \$"
done
expect_equal 1 "$(grep -c 'password of sudo on h\[1-2\]:' "$out")"
expect_no_output "$secret"
expect_equal 6 "$(grep -c '^h[123]: 0$' "$out")"
seq 200000 >numbers
expect_exit 0 typed "$secret" sh -c '"$0" command -w h1,h2,h3 --sudo --stdin -- md5sum <numbers' "$DTOOL"
expect_equal 3 "$(grep -c "$(md5sum <numbers)" "$out")"
expect_exit 0 typed "$secret" "$DTOOL" command -w h1,h3 --sudo -- printf '%s|' 'a  b' '$HOME' ''
for host in h1 h3; do expect_output "^$host: a  b\|\\\$HOME\|\|\$"; done
expect_exit 1 typed "$secret" "$DTOOL" command -w h1,h3 --sudo --json -- 'exit 7'
for place in "$HOME/.dtool" "$DTOOL_LAB_FOLDER"/host*/root; do
  ! grep -rlF "$secret" "$place" || fail "the password stands in a file of $place"
done
expect_equal '0 0' "$(failures 1) $(failures 2)"

# A wrong one is tried once, on one host, and nothing is run.
expect_exit 2 typed wrong "$DTOOL" command -w h1,h2,h3 --sudo -- touch /root/of_root/ran
expect_output 'sudo on h1 does not take this password: sudo: 1 incorrect password attempt'
expect_output 'hint: it was tried once, and nothing was run on any host'
expect_equal '1 0' "$(failures 1) $(failures 2)"
for host in 1 2 3; do sudo_on $host test ! -e /root/of_root/ran || fail "the command ran on host $host"; done
# Right on the first host, wrong on another: that host alone fails, after one try, and no input is taken for a password.
gives_sudo 2 another 'ann ALL=(ALL:ALL) ALL'
expect_exit 1 typed "$secret" sh -c '"$0" command -w h1,h2,h3 --sudo --stdin -- md5sum <numbers' "$DTOOL"
expect_equal 2 "$(grep -c "$(md5sum <numbers)" "$out")"
expect_output '1 of 3 hosts failed'
expect_equal '1 1' "$(failures 1) $(failures 2)"

# Where sudo says that it asks and reads nothing, the command does not get the password either.
gives_sudo 2 "$secret" 'ann ALL=(ALL:ALL) ALL'
sudo_on 2 sh -c 'printf "auth sufficient pam_permit.so\naccount required pam_unix.so\n" >/etc/pam.d/sudo'
expect_exit 0 typed "$secret" "$DTOOL" command -w h2,h1 --sudo -- cat
expect_no_output "$secret"
expect_exit 0 typed "$secret" sh -c '"$0" command -w h2,h1 --sudo --stdin -- md5sum <numbers' "$DTOOL"
expect_equal 2 "$(grep -c "$(md5sum <numbers)" "$out")"
# Nor where sudo asks, but not for this very command.
gives_sudo 2 "$secret" 'ann ALL=(ALL:ALL) ALL, NOPASSWD: /bin/sh -c cat, /bin/sh -c md5sum'
expect_exit 0 typed "$secret" "$DTOOL" command -w h2,h1 --sudo -- cat
expect_no_output "$secret"
expect_exit 0 typed "$secret" sh -c '"$0" command -w h2,h1 --sudo --stdin -- md5sum <numbers' "$DTOOL"
expect_equal 2 "$(grep -c "$(md5sum <numbers)" "$out")"
# It does not go on without a password afterwards, and works where sudo remembers nobody.
sudo_on 2 sh -c 'echo "Defaults timestamp_type=global" >>/etc/sudoers'
expect_exit 0 typed "$secret" "$DTOOL" command -w h2 --sudo -- id -u
expect_exit 1 dtool command -w h2 -- 'sudo -n id -u'
expect_error 'a password is required'
sudo_on 2 sh -c 'echo "Defaults timestamp_timeout=0" >>/etc/sudoers'
expect_exit 0 typed "$secret" sh -c '"$0" command -w h2,h1 --sudo --stdin -- "cat | md5sum" <numbers' "$DTOOL"
expect_equal 2 "$(grep -c "$(md5sum <numbers)" "$out")"
gives_sudo 2 "$secret" 'ann ALL=(ALL:ALL) ALL'
# It waits for no input that the command does not read.
mkfifo never
expect_exit 0 typed "$secret" sh -c 'exec 9<>never; timeout --foreground 60 "$0" command -w h1,h2 --sudo --stdin -- id -u <&9' "$DTOOL"

# Who may not become root is told so.
gives_sudo 2 "$secret" 'ben ALL=(ALL:ALL) ALL'
expect_exit 1 typed "$secret" "$DTOOL" command -w h1,h2,h3 --sudo -- id -u
expect_output '^h1: 0$'
expect_output '^h2: ann is not in the sudoers file'
expect_exit 1 typed "$secret" "$DTOOL" command -w h2,h1 --sudo -- id -u
expect_output '^h1: 0$'
expect_output '  h2: sudo: ann is not in the sudoers file'

expect_exit 1 typed "$secret" "$DTOOL" command -w h2,h1 --sudo --fail_fast -- touch /root/of_root/ran
expect_output '  h1: ended because h2 failed'
sudo_on 1 test ! -e /root/of_root/ran || fail 'the command ran although a host had failed'

# Ctrl-C at the question, and a timeout that ends what root runs.
expect_exit 130 typed ^C "$DTOOL" command -w h1 --sudo -- id -u
expect_output '^typing is shown$'
running() { sudo_on "$1" pgrep -fx 'sleep 3061' >/dev/null; }
not_running() { ! running "$1"; }
expect_exit 1 typed "$secret" "$DTOOL" command -w h1,h3 --sudo --timeout 2 -- 'trap "" HUP; sleep 3061 & sleep 3061'
expect_output 'the command did not end in time'
for host in h1 h3; do eventually 10 not_running $host; done

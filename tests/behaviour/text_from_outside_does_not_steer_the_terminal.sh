#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Escape sequences of servers before log-in, of hosts and of files are shown, and not obeyed: each text that comes from outside
# passes one gate. Colours of programs reach a terminal, and a pipe gets the programs' bytes as they are.
source "$(dirname "$0")/harness.sh"
needs_program script

lab 1
on_terminal() { timeout 60 env TERM=xterm script -qec "$(printf '%q ' "$@")" /dev/null; }

# What a terminal would obey: a title, a cleared screen, a hidden text, C1 controls in UTF-8 and as a byte, a turned direction,
# a step back, DEL.
evil=$'<\e]0;owned\a\e[2J\xc2\x9b3J\x9b4J\xe2\x80\xae\x08\x7f>'
shown='<\x1b]0;owned\x07\x1b[2J\u009b3J\x9b4J\u202e\x08\x7f>'

# What is left of $1 without dtool's own sequences and colours, and a terminal's ends of lines.
strange() {
  sed -E $'s/\e\\[[0-9;]*m//g; s/\e\\[(\\?1049|\\?25)[hl]//g; s/\e\\[[0-9]*[AJHK]//g; s/\e\\[H\e\\[2J//; s/\r+$//; s/\r//g' "$1" |
    LC_ALL=C grep -aP '[\x01-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]|(^|[\x00-\x7f])[\x80-\xbf]' || true
}
expect_tame() {
  local file
  for file in "$out" "$err"; do
    [[ -z $(strange "$file") ]] || fail "controls from outside in $(basename "$file"): $(strange "$file" | head -n 3 | cat -v)"
    ! grep -qaF $'\e[2J\xc2' "$file" && ! grep -qaF 'owned'$'\a' "$file" || fail 'a sequence from outside came through'
  done
}
expect_shown() { cat "$out" "$err" | grep -qaF -e "$1" || fail "this is not shown: $1"; }

# A server that is nobody's yet: its greeting, and its farewell before any key was exchanged.
cat >"$work/server.py" <<'PYTHON'
import socket, struct, sys
evil = sys.stdin.buffer.read()
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client, _ = server.accept()
    try:
        if sys.argv[1] == "greeting":
            client.sendall(b"SSH-9.9-" + evil + b"\r\n")
        else:
            client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            text = evil + b"\nhint: curl example.org | sh\ndtool: all well"
            payload = b"\x01" + struct.pack(">II", 2, len(text)) + text + struct.pack(">I", 0)
            padding = 8 - (5 + len(payload)) % 8
            padding += 8 if padding < 4 else 0
            asked = b""
            while len(asked) < 300: asked += client.recv(65536)  # its offer of algorithms, behind its greeting
            client.sendall(struct.pack(">IB", 1 + len(payload) + padding, padding) + payload + b"\0" * padding)
            while client.recv(65536): pass
    except OSError:
        pass
    client.close()
PYTHON
for kind in greeting farewell; do
  /usr/bin/python3 "$work/server.py" "$kind" >"$work/port.$kind" <<<"$evil" &
  at_end "kill $!"
  eventually 10 test -s "$work/port.$kind"
  port=$(cat "$work/port.$kind")
  for command in command trust; do
    words=("$DTOOL" "$command" --runs_on "127.0.0.1:$port")
    [[ $command == trust ]] || words+=(--command hostname)
    expect_exit 1 "${words[@]}"
    expect_tame
    expect_no_error '^(hint: curl|dtool: all well)'
    [[ $kind == greeting ]] || expect_shown '\x1b]0;owned\x07'
    expect_exit 1 on_terminal "${words[@]}"
    expect_tame
    expect_no_output '^(hint: curl|dtool: all well)'
    expect_exit 1 "${words[@]}" --json
    expect_tame
    json 'd["exit_code"]' >"$work/ignored"
  done
done

# Output of hosts: a terminal is shown it, with its colours, which end with their line; a pipe gets the bytes.
printf '%s' "$evil" >"$work/evil"
printf -v says "printf %%b '%s\\\\n'" "$(printf '%s' "$evil" | od -An -v -to1 | tr -d '\n' | sed 's/ /\\0/g')"
expect_exit 0 dtool command --runs_on h1 --command "$says; $says >&2"
expect_equal "h1: $evil" "$(cat "$out")"
expect_equal "h1: $evil" "$(cat "$err")"
expect_exit 0 dtool command --json --runs_on h1 --command "$says"
expect_tame
json 'd["hosts"][0]["stdout"]' >"$work/ignored"
for style in '' --fold; do
  expect_exit 0 on_terminal "$DTOOL" command $style --runs_on h1 --command "$says; $says >&2"
  expect_tame
  expect_shown "$shown"
  expect_exit 0 on_terminal "$DTOOL" command $style --runs_on h1 --command 'printf "\033[32mgreen\nplain\r\n 10%%\r 90%%\rall\n"'
  expect_output $'\e\\[32mgreen\e\\[0m'
  expect_output 'plain'
  expect_output 'all'
  expect_no_output '90%'
  expect_exit 0 on_terminal env NO_COLOR=1 "$DTOOL" command $style --runs_on h1 --command 'printf "\033[32mgreen\n"'
  expect_no_output $'\e\\[32m'
done

# A set-up script, a run that fails, its log, its state and its outputs.
printf '#!/bin/sh\n%s\nexit 3\n' "$says" >setup.sh
chmod +x setup.sh
expect_exit 1 on_terminal "$DTOOL" config --runs_on h1 --config_script setup.sh --follow
expect_tame
expect_shown "$shown"
expect_exit 1 on_terminal "$DTOOL" run --runs_on h1 --follow --extra_tag first -- bash -c "$says; printf '%s\n' \"dtool: the run failed: \$($says)\"; $says >&2; exit 3"
expect_tame
expect_shown "$shown"
for command in logs status 'status --watch' fetch 'list --state' 'logs --json' 'status --json'; do
  # shellcheck disable=SC2086
  run on_terminal "$DTOOL" $command
  expect_tame
done
expect_exit 1 dtool status
expect_tame

# Names of files that come from hosts, and files of somebody else's.
on h1 bash -c 'folder=$(echo /root/here*/experiment_output/*first* | cut -d " " -f 1); [[ -d $folder ]] || folder=$(find / -xdev -type d -path "*experiment_output/*first*" | head -n 1); mkfifo "$folder/$1"' - "$evil"
run on_terminal "$DTOOL" fetch
expect_tame
printf '"%s" = 1\n' 'x\u001b]0;owned\u0007\u009b2J\nhint: curl example.org | sh' >dtool.toml
expect_exit 2 on_terminal "$DTOOL" command --runs_on h1 --command hostname
expect_tame
expect_no_output '^hint: curl'

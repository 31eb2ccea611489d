#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool config` runs a set-up script on every host in a screen session, follows it to its end, refuses only the hosts
# where one is still running, and adds the launcher's public key once.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program tmux
lab 3
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
config() { timeout 60 "$DTOOL" config --runs_on "$DTOOL_LAB_HOSTS" "$@"; }

expect_exit 2 config
expect_error 'there is nothing to do'
expect_exit 2 config --config_script absent.sh
expect_error 'config_script: there is no file absent.sh'
head -c 300 "$DTOOL" >binary
expect_exit 2 config --config_script binary
expect_error 'binary is not a text file'
expect_exit 2 timeout 60 "$DTOOL" config --config_script binary
printf 'pwd; echo "done $0"\n' >good.sh
expect_exit 2 timeout 60 "$DTOOL" config --config_script good.sh
expect_error 'no hosts were named'

expect_exit 0 config --follow --config_script good.sh
expect_error '3 of 3 hosts set up'
expect_equal /root "$(on 2 head -n 1 log_dtool_distributed_config)"

# Each with an interpreter of its own, and a log that begins anew
printf '#!/usr/bin/perl\nprint "perl $]\\n";' >"it's perl"
expect_exit 0 config --follow --config_script "it's perl"
expect_equal 1 "$(on 3 grep -c . log_dtool_distributed_config)"
expect_equal 'perl 5' "$(on 3 head -c 6 log_dtool_distributed_config)"

# An interpreter that is not there is named, and not only the script.
printf '#!/usr/bin/pearl -w\nprint 1;\n' >misspelt
expect_exit 1 config --follow --config_script misspelt
expect_error '^ +/usr/bin/pearl is not there, which the script.s first line names$'
printf '#!/bin/bash\r\necho 1\r\n' >of_windows
expect_exit 2 config --follow --config_script of_windows
expect_error '^dtool: of_windows: its lines end as on Windows$'

# A failure, with the exit code and the last lines
printf 'for i in $(seq 30); do echo "line $i"; done\n[ "$(hostname)" = "$(cat name)" ] || exit 0\necho "no space" >&2\nexit 3\n' >fails.sh
for host in 1 2 3; do on "$host" bash -c 'echo lab-none >name'; done
on 2 bash -c 'hostname >name'
expect_exit 1 config --follow --config_script fails.sh
expect_error "^  ${address[1]}: exit code 3; its last lines:"
expect_error '^ +line 30$'
expect_error '^ +no space$'
expect_error '2 of 3 hosts set up'
expect_exit 1 config --follow --json --config_script fails.sh
expect_equal '[0, 3, 0]' "$(json '[host["exit_code"] for host in d["hosts"]]')"

# A host that was not reached has nothing to end.
fault cut h3
expect_exit 1 config --connect_timeout 1 --config_script good.sh
expect_exit 0 timeout 60 "$DTOOL" kill --connect_timeout 1 --yes --delete last
expect_error ': [0-9]+ process(es)? ended on [^;]*; none is left$'
expect_no_error "${address[2]}: "
fault mend h3

# What could not be recorded is not started, and leaves nothing on the hosts.
before=$(on 1 ls .dtool/runs)
mv "$HOME/.dtool/killfiles" "$HOME/.dtool/kept_killfiles"
: >"$HOME/.dtool/killfiles"
expect_exit 2 config --config_script good.sh
expect_error '^nothing was started, since it could not be recorded$'
expect_error "^dtool: $HOME/.dtool/killfiles.*: cannot be "
expect_equal "$before" "$(on 1 ls .dtool/runs)"
rm "$HOME/.dtool/killfiles"
mv "$HOME/.dtool/kept_killfiles" "$HOME/.dtool/killfiles"

# One that still runs on a host is refused there alone; --force ends it first.
echo 'sleep 334455' >slow.sh
expect_exit 0 timeout 60 "$DTOOL" config --runs_on "${address[2]}" --config_script slow.sh
# A session has started before its script has come to the sleep.
sleep_on() { [[ $(pgrep -fc '^sleep 334455') == "$1" ]]; }
expect_output_of_screens() { on "$1" screen -ls | grep -c "\.dtool_config_machine$2\b"; }
expect_equal 1 "$(expect_output_of_screens 3 0)"
expect_exit 1 config --config_script slow.sh
expect_error "^  ${address[2]}: a set-up script is still running there"
expect_error 'hint: --force ends it first'
eventually 10 sleep_on 3
expect_equal 1 "$(expect_output_of_screens 2 1)"
expect_exit 0 config --force --config_script slow.sh
eventually 10 sleep_on 3
expect_equal 1 "$(expect_output_of_screens 3 2)"
expect_exit 0 timeout 60 "$DTOOL" kill --all --yes --delete
expect_equal '' "$(pgrep -f '^sleep 334455' || true)"

# The key, once, also behind a line without its end
ssh-keygen -q -t ed25519 -N '' -C 'a new key' -f key
keys=$DTOOL_LAB_FOLDER/host2/root/.ssh/authorized_keys
printf %s "$(cat "$keys")" >"$keys"
for _ in 1 2; do
  expect_exit 0 config --distribute_public_key --public_key key.pub
  expect_equal 1 "$(grep -cxF "$(cat key.pub)" "$keys")"
done
expect_error 'public key: added on 0 of 3 hosts'
expect_exit 0 timeout 60 "$DTOOL" command --ssh_cmd 'ssh -i key -o IdentitiesOnly=yes' --runs_on "$DTOOL_LAB_HOSTS" --command true
expect_exit 2 config --distribute_public_key --public_key key
expect_error 'is not a public key'

# The picture on a terminal of 80 columns and 24 rows
printf 'for i in 1 2 3 4 5 6; do printf "step %%s of a long line that does not fit into eighty columns, whatever one does\\n" $i; sleep 0.3; [ $i != 4 ] || until [ -e ~/seen ]; do sleep 0.1; done; done\n' >steps.sh
tmux -L "$test_name-$$" -f /dev/null new-session -d -x 80 -y 24 "$(printf '%q ' "$DTOOL" config --runs_on "$DTOOL_LAB_HOSTS" --follow --config_script steps.sh); sleep 2"
picture() { tmux -L "$test_name-$$" capture-pane -p; }
shows_rows() { picture >"$work/picture"; [[ $(grep -cE '^ *198\..*: step [2-5] of' "$work/picture") == 3 && $(grep -c . "$work/picture") == 3 ]]; }
eventually 20 shows_rows
for host in 1 2 3; do on "$host" touch seen; done
shows_end() { picture | grep -q '3 of 3 hosts set up'; }
eventually 20 shows_end
tmux -L "$test_name-$$" kill-server || true

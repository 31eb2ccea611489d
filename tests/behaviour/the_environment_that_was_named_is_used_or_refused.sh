#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With --env_activate_path a program runs in the run's own tree and in the environment that was named: whatever its script does, and
# whatever the log-in says. A virtual environment that is of no use on the host is refused by name, with what to do.
# shellcheck disable=SC2088,SC2016  # it is for the hosts to expand
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_file /usr/bin/python3
lab 2
run_there() { expect_exit "$1" timeout 60 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" "${@:2}"; }
for host in 1 2; do
  on "$host" bash -c 'mkdir old && echo "print(\"the old folder\")" >old/main.py'
  on "$host" bash -c 'cat >activate' <<'S'
cd ~/old; set -euf; trap 'echo bye' EXIT DEBUG ERR RETURN; trap '' TERM; exec >/dev/null 2>&1; umask 077
cd() { :; }; program=(echo other) code=/root/old; export port=8080
S
done
cat >main.py <<'S'
import os, signal
print("the new one", os.environ["port"], oct(os.umask(0)), signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
S
run_there 0 --env_activate_path '~/activate' -- python3 main.py
for id in 0 1; do expect_output "^machine$id: the new one 8080 0o77 True\$"; done
expect_no_output 'the old folder'
# A trap that prints, in the middle of what dtool asks that shell.
for host in 1 2; do echo 'trap "echo traced" DEBUG; export port=8080' >"$DTOOL_LAB_FOLDER/host$host/root/traced"; done
expect_exit 0 dtool check --runs_on "$DTOOL_LAB_HOSTS" --env_activate_path '~/traced'
run_there 0 --env_activate_path '~/traced' -- sh -c 'echo "at $port"'
for id in 0 1; do expect_output "^machine$id: at 8080\$"; done
# A program that is a link to what only this machine has.
ln -s /opt/python3.99 python
run_there 1 -- ./python main.py
expect_error '\./python leads to /opt/python3\.99, which is not on this host'
rm python
# Names of dtool's own are names like others.
run_there 0 --export program=evil --export code=/nowhere -- sh -c 'echo "$program $code"; cat main.py'
for id in 0 1; do expect_output "^machine$id: evil /nowhere\$"; done
expect_output '^machine0: import os'

# An environment that a host has itself; the log-in's own PYTHONPATH is not used there, and is with a script.
for host in 1 2; do
  on "$host" bash -c 'python3 -m venv --without-pip venv && mkdir other && echo "WHOSE = \"the host\"" >other/thing.py
    echo "WHOSE = \"the environment\"" >"$(echo venv/lib/python3*/site-packages)/thing.py"; echo "export PYTHONPATH=\$HOME/other" >.bashrc'
done
whose=(-- python3 -c 'import thing; print("of", thing.WHOSE)')
for name in '~/venv' '~/venv/bin/activate'; do
  run_there 0 --env_activate_path "$name" "${whose[@]}"
  for id in 0 1; do expect_output "^machine$id: of the environment\$"; done
  expect_error '^198[^ ]*\.\[1-2\]: PYTHONPATH=/root/other of the log-in does not count beside the environment that was named; --export sets it$'
done
run_there 0 --env_activate_path '~/activate' "${whose[@]}"
expect_output '^machine1: of the host$'
run_there 0 --env_activate_path '~/venv' -- bash -lc 'true'
expect_error "^bash -lc reads the log-in's files, which may set PATH anew"

# A file of the log-in's that each script's bash reads first.
echo 'type -P python3; echo "${BASH_ENV-none}"' >which.sh
for host in 1 2; do
  on "$host" bash -c 'echo "PATH=/usr/bin:\$PATH" >env.bash; echo "SET=yes" >tame.bash; echo "export BASH_ENV=\$HOME/env.bash" >.bashrc'
done
run_there 0 --env_activate_path '~/venv' -- bash which.sh
for id in 0 1; do expect_output "^machine$id: /root/venv/bin/python3\$"; done
expect_output '^machine0: none$'
expect_error 'BASH_ENV=/root/env.bash of the log-in does not count beside the environment that was named; --export sets it$'
for host in 1 2; do on "$host" sed -i 's/env.bash/tame.bash/' .bashrc; done
run_there 0 --env_activate_path '~/venv' -- bash which.sh
expect_output '^machine0: /root/tame.bash$'

# One of this machine in the code folder, which names this machine's folder; one whose Python is not there.
/usr/bin/python3 -m venv --without-pip .venv
refused() {
  expect_exit 2 timeout 60 "$DTOOL" run --runs_on "$DTOOL_LAB_HOSTS" --env_activate_path .venv -- python3 -c 'print("ran")'
  expect_error "--env_activate_path: .*/\.venv is of no use here: $1"
  expect_error '^nothing was started'
  expect_error 'hint: a virtual environment serves the machine and the folder .*--environment requirements.txt'
  expect_exit 1 dtool check --runs_on "$DTOOL_LAB_HOSTS" --env_activate_path .venv
  expect_output "\.venv is of no use here: $1"
}
refused "it was made for $PWD/\.venv, and python3 is /"
rm .venv/bin/python3
ln -s /opt/python3.99 .venv/bin/python3
refused 'its python3 leads to /opt/python3.99, which is not on this host'
# The same folder serves a run on this machine.
rm -r .venv
/usr/bin/python3 -m venv --without-pip .venv
expect_exit 0 timeout 60 "$DTOOL" run --follow --env_activate_path .venv -- python3 -c 'import sys; print(sys.prefix)'
expect_output "^machine0: $PWD/\.venv\$"

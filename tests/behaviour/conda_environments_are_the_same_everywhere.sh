#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool run --environment environment.yml`: conda packages are chosen once, sent, and installed on hosts that reach nothing but each
# other and have no conda. The second run installs nothing, and what cannot work is named before anything starts.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program cc

needs_tool_wheels
# This machine's Python shall be the hosts': the wheels are for it.
export PATH=/usr/bin:$PATH

lab 3
make_channel() { /usr/bin/python3 "$here/conda_channel.py" "$@"; }
make_channel channel 1.0
first_host=${DTOOL_LAB_HOSTS%%,*}

# environment CHANNEL DEPENDENCY...
environment() {
  echo 'name: test'
  printf 'channels:\n- %s\ndependencies:\n' "$1"
  printf -- '- %s\n' "${@:2}"
}
environment ./channel 'greet>=1' >environment.yml
run_greet() {
  expect_exit "${1:-0}" timeout 120 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" "${@:2}" --environment environment.yml -- \
    bash -c 'greet-all; native; cat $CONDA_PREFIX/etc/native.conf; python3 -c "import sys; print(sys.prefix)"'
}
environments_on() { on "$1" bash -c 'ls ~/.dtool/environments'; }

run_greet
place='/root/\.dtool/environments/[0-9a-f]{64}/conda'
for machine in 0 1 2; do
  expect_output "^machine$machine: greet 1.0 from $place/lib/python3"
  expect_output "^machine$machine: native in $place\$"
  expect_output "^machine$machine: here=$place\$"
  expect_output "^machine$machine: $place\$"
done
expect_error '^built environment.yml on '
for host in 1 2 3; do
  expect_equal "$(environments_on 1)" "$(environments_on "$host")"
  expect_equal 'complete conda lock' "$(on "$host" bash -c 'ls ~/.dtool/environments/*' | xargs)"
done
first=$(environments_on 1)

# Nothing has changed: nothing is installed, but on a host that lost it or has half of it.
run_greet
expect_no_error '^built '
on 2 bash -c 'rm -r ~/.dtool/environments'
on 3 bash -c 'rm ~/.dtool/environments/*/complete ~/.dtool/environments/*/conda/bin/native'
run_greet
expect_error '^built environment.yml on 198\.18\.[0-9]*\.\[?[23]'
expect_equal "$first" "$(environments_on 2)"

# Two runs at once need the same environment on the same hosts.
for host in 1 2 3; do on "$host" bash -c 'rm -r ~/.dtool/environments'; done
one_of_two() { timeout 120 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" --environment environment.yml -- greet-all; }
one_of_two >"$work/one" 2>&1 & pids=($!)
one_of_two >"$work/two" 2>&1 & pids+=($!)
for which in 0 1; do expect_ended 0 "${pids[which]}" "run $which of two at once" "$work/one" "$work/two"; done
expect_equal "$first" "$(environments_on 3)"

# A run that is interrupted while hosts install hinders none after it.
on 1 bash -c 'rm -r ~/.dtool/environments'
timeout 120 "$DTOOL" run --runs_on "$first_host" --environment environment.yml -- greet-all >"$work/one" 2>&1 & pid=$!
eventually 60 on 1 bash -c 'ls -d ~/.dtool/environments/*/packages/install_conda.py'
kill -INT "$pid"
expect_ended 130 "$pid" 'an interrupted run' "$work/one"
run_greet

# A newer package in the same channel is another environment. From a server, packages are chosen once.
make_channel channel 1.1
/usr/bin/python3 -u -m http.server 0 --bind 127.0.0.1 -d channel >"$work/server" 2>&1 & server=$!
at_end "kill $server 2>/dev/null"
eventually 10 grep -q 'port [0-9]' "$work/server"
port=$(sed -nE 's/.* port ([0-9]+) .*/\1/p' "$work/server")
environment "http://127.0.0.1:$port" greet >environment.yml
run_greet
expect_output '^machine2: greet 1.1 from'
expect_equal 2 "$(environments_on 1 | wc -l)"
kill "$server"
run_greet
expect_no_error '^built '
expect_equal 1 "$(find "$HOME/.dtool/conda" -name '*.resolved' | wc -l)"

# Another working folder takes the same solver, and what channels told long ago goes.
solvers=$(find "$HOME/.dtool/wheels" -name '*.resolved' | sort)
mkdir -p "$HOME/.dtool/conda/repodata" elsewhere
touch -d '40 days ago' "$HOME/.dtool/conda/repodata/old.json"
cp -r channel elsewhere
cd elsewhere
environment ./channel greet >environment.yml
run_greet
cd ..
expect_equal "$solvers" "$(find "$HOME/.dtool/wheels" -name '*.resolved' | sort)"
expect_no_file "$HOME/.dtool/conda/repodata/old.json"

# What stands below pip: comes beside it, held to the versions that conda chose, and with its programs.
wheel() { python3 "$here/make_wheel.py" wheels "$@"; }
wheel words 1.0 'def main(): print("words in", __file__)' 'held>=1' 'greet; python_version < "3"'
wheel held 2.0 'def main(): print("of pip")'
wheel wants_other 1.0 'def main(): pass' 'held>=2'
export PIP_FIND_LINKS="$PIP_FIND_LINKS $PWD/wheels"
with_pip() {
  environment ./channel greet held
  printf '%s\n' '- pip:' "${@/#/  - }"
}
echo words >more.txt
with_pip '-r more.txt' >environment.yml
run_words() { expect_exit 0 timeout 120 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" --environment environment.yml -- bash -c 'words; greet-all; python3 -c "import held; held.main()"'; }
run_words
for machine in 0 1 2; do
  expect_output "^machine$machine: words in $place/lib/python3"
  expect_output "^machine$machine: greet 1.1 from $place/lib/python3"
  expect_output "^machine$machine: held of conda$"
done
expect_error '^built environment.yml on '
run_words
expect_no_error '^built '
wheel words 2.0 'def main(): print("newer words")'
run_words
expect_no_error '^built ' # what was chosen stays
echo 'words>=2' >more.txt
run_words
expect_output '^machine0: newer words'

# Mistakes: nothing is started.
touch before
refuses() {
  local pattern=$1
  expect_exit 2 timeout 100 "$DTOOL" run --runs_on "$DTOOL_LAB_HOSTS" --environment wrong.yml -- true
  expect_error "$pattern"
}
environment "http://127.0.0.1:$port/gone" greet >wrong.yml
refuses 'wrong.yml: py-rattler says: .*[Cc]onnection refused'
environment ./nothing greet >wrong.yml
refuses 'wrong.yml: py-rattler says: .*nothing'
with_pip wants_other >wrong.yml
refuses 'wrong.yml: uv says: .*held'
with_pip no_such_package >wrong.yml
refuses 'wrong.yml: uv says: .*no-such-package'
environment ./channel greet no-such-package >wrong.yml
refuses 'py-rattler says: Cannot solve.*no-such-package'
environment ./channel for_gpus >wrong.yml
refuses 'py-rattler says: Cannot solve.*__cuda'
environment ./channel 'greet = = 1' >wrong.yml
refuses 'the dependency greet = = 1: '
environment defaults greet >wrong.yml
refuses "the channel defaults is conda's own setting"
environment ftp://127.0.0.1/channel greet >wrong.yml
refuses 'the channel ftp://127.0.0.1/channel is neither a name, a folder nor an address'
for case in \
  'it is no mapping|- greet' \
  'it is no YAML|channels: [' \
  'it is no YAML|[[[[[[[[' \
  'line 2: aliases \(\*NAME\) are not read|a: &a [x]|b: *a' \
  'there is no key platforms|platforms: [linux-64]' \
  'variables are not read: set them with --export|variables: {A: 1}' \
  'it names no channels|dependencies: [greet]' \
  'dependencies is no list|channels: [./channel]' \
  'channels is there twice|channels: [a]|channels: [b]' \
  'packages below pip: need python among the dependencies|channels: [./channel]|dependencies: [native, {pip: [words]}]' \
  'what stands below pip: is no text|channels: [./channel]|dependencies: [greet, {pip: [{a: b}]}]' \
  'pip: is there twice|channels: [./channel]|dependencies: [greet, {pip: [words]}, {pip: [words]}]' \
  'a dependency is no text|channels: [./channel]|dependencies: [{conda: [numpy]}]'; do
  tr '|' '\n' <<<"${case#*|}" >wrong.yml
  refuses "wrong.yml: .*${case%%|*}"
done
/usr/bin/python3 -c 'print("channels: " + "[" * 100000)' >wrong.yml
refuses 'wrong.yml: it is no YAML'
head -c 2000000 /dev/zero | tr '\0' '#' >wrong.yml
refuses 'wrong.yml: it is longer than 1 MiB'

# A channel's words become neither paths nor packages unseen.
spoil() {
  rm -rf spoiled
  cp -r channel spoiled
  /usr/bin/python3 - "$@" <<'END_OF_PYTHON'
import json, sys
file = "spoiled/noarch/repodata.json"
data = json.load(open(file))
packages = data["packages"]
exec(sys.argv[1])
json.dump(data, open(file, "w"))
END_OF_PYTHON
}
environment ./spoiled greet >wrong.yml
spoil 'packages["greet-1.1-0.tar.bz2"]["sha256"] = "0" * 64'
refuses 'greet-1.1-0.tar.bz2 does not have the SHA-256 that the channel tells'
spoil 'del packages["greet-1.1-0.tar.bz2"]["sha256"]'
refuses 'the channel tells no SHA-256 of greet-1.1-0.tar.bz2'
spoil 'packages["../../../greet-1.1-0.tar.bz2"] = packages.pop("greet-1.1-0.tar.bz2"); packages.pop("greet-1.0-0.tar.bz2")'
refuses 'No candidates were found'
spoil 'packages["greet-1.1-0.tar.bz2"]["sha256"] = "1" * 64; open("spoiled/noarch/greet-1.1-0.tar.bz2", "r+b").truncate(1 << 30)'
refuses 'greet-1.1-0.tar.bz2 cannot be fetched: .*File too large'
spoil 'del packages["greet-1.1-0.tar.bz2"]["size"]'
refuses 'the channel tells no size of .greet-1.1-0.tar.bz2'
expect_equal '' "$(find "$HOME/.dtool/conda" "$HOME/.dtool/wheels" -name '.draft.*' -o -name '.*.[0-9]*')"

# A server that never answers holds nobody: Ctrl-C ends the wait.
/usr/bin/python3 -uc 'import socket, time; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1]); time.sleep(600)' >"$work/silent" & silent=$!
at_end "kill $silent"
eventually 10 test -s "$work/silent"
environment "http://127.0.0.1:$(cat "$work/silent")/" greet >wrong.yml
for signal in INT=130 TERM=143; do
  timeout 100 "$DTOOL" run --runs_on "$first_host" --environment wrong.yml -- true >"$work/one" 2>&1 & pid=$!
  eventually 30 pgrep -f 'wrong.yml (x86_64|aarch64) [0-9]'
  kill "-${signal%=*}" "$pid"
  expect_ended "${signal#*=}" "$pid" 'a run that waits for a channel'
  eventually 10 bash -c '! pgrep -f "wrong.yml (x86_64|aarch64) [0-9]"'
done

expect_equal 0 "$(find "$HOME/.dtool/killfiles" -newer before -name '*.killfile' | wc -l)"

# Hosts that cannot take part are named before anything is sent.
on 1 bash -c 'rm -r ~/.dtool/environments'
on 1 mkdir /root/.dtool/environments
disk_on 1 size=8m /root/.dtool/environments
environment ./channel greet >environment.yml
run_greet 2
expect_error "$first_host"
expect_error '^nothing was started'
sudo_on 1 umount /root/.dtool/environments
run_greet
touch before
fault hide h2 python3
run_greet 2
expect_error "there is no python3 of 3.10 or later, which py-rattler needs to install conda's packages"
expect_error '^nothing was started'
fault unhide h2 python3
# A host whose python3 says of itself what $1 is.
pretend() {
  on 2 mkdir -p /root/bin
  printf '#!/bin/sh\necho %s\n' "$1" >"$DTOOL_LAB_FOLDER/host2/root/bin/python3"
  chmod +x "$DTOOL_LAB_FOLDER/host2/root/bin/python3"
  # shellcheck disable=SC2016
  echo 'PATH=/root/bin:$PATH' >"$DTOOL_LAB_FOLDER/host2/root/.bashrc"
}
pretend '3.12 aarch64 5.10 0 glibc 2.36'
run_greet 2
expect_error 'it has the processor aarch64, and other hosts the processor x86_64'
pretend '3.9 x86_64 5.10 0 glibc 2.36'
run_greet 2
expect_error 'there is no python3 of 3.10 or later'
pretend '3.12 x86_64 ../$(id) 0 glibc 2.36'
run_greet 2
expect_error 'its answer cannot be read'
expect_equal 0 "$(find "$HOME/.dtool/killfiles" -newer before -name '*.killfile' | wc -l)"

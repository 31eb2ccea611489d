#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Exit code 2, a message that names the thing, and on no host a process, a session or a folder: mistakes in flags and
# files, hosts that lack something or cannot be reached. Where a start fails on one host, the others are ended again.
# shellcheck disable=SC2088
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
mkdir tree
cd tree
touch code

untouched() {
  local host
  for host in 1 2 3; do
    expect_equal '' "$(on "$host" bash -c 'ls -A .dtool/runs 2>/dev/null; ls /run/screen/S-* 2>/dev/null || true')"
  done
  [[ ! -d $HOME/.dtool/killfiles ]] || expect_equal '' "$(ls -A "$HOME/.dtool/killfiles")"
}
refuses() { # MESSAGE FLAGS...
  local message=$1
  shift
  expect_exit 2 timeout 60 "$DTOOL" run --runs_on "$DTOOL_LAB_HOSTS" "$@"
  expect_error "^dtool: .*$message"
  expect_no_output .
}

# Nobody is asked about these.
logins() { cat "$DTOOL_LAB_FOLDER"/host?/sshd.log | grep -c '^Connection from\|^Accepted' || true; }
before=$(logins)
refuses 'wants IP:PORT or auto, not 1.2.3.4$' --distributed_ip_and_port 1.2.3.4 -- true
refuses 'wants IP:PORT or auto, not :80$' --distributed_ip_and_port :80 -- true
refuses 'wants IP:PORT or auto, not .*:65536$' --distributed_ip_and_port "${address[0]}:65536" -- true
refuses '1\.2\.3\.4 is not one of the hosts' --distributed_ip_and_port 1.2.3.4:80 -- true
refuses "${address[1]} is machine 1, but rank 0 listens on the first machine" --distributed_ip_and_port "${address[1]}:80" -- true
refuses 'config_kwargs: .*line 1, column 8' --config_kwargs '{"a":1,}' digits
refuses 'wants a JSON object, not \[1\]' --config_kwargs '[1]' digits
refuses 'distributed_nodes is 4 in --config_kwargs, but the run has 3 machines' --config_kwargs '{"distributed_nodes":4}' -- true
refuses 'distributed_nodes wants a whole number' --config_kwargs '{"distributed_nodes":"three"}' -- true
refuses 'there is no experiment to put train into' --config_kwargs '{"train":{}}' -- true
printf 'workload = "classifier"\n[train]\nepochs = \n' >broken.toml
refuses 'broken.toml:3:[0-9]+: ' broken.toml
printf 'distributed_nodes = 2\n[train]\nepochs = 1\n' >two.toml
refuses 'distributed_nodes is 2 in two.toml, but the run has 3 machines' two.toml
refuses 'train.epochs is null' --config_kwargs '{"distributed_nodes":3,"train":{"epochs":null}}' two.toml
refuses 'train is a table in the experiment, not 1' --config_kwargs '{"train":1}' two.toml
refuses 'config_kwargs: the key .trai\\x0a. has a control character' --config_kwargs '{"trai\n":{"epochs":3}}' two.toml
refuses 'there is no experiment absent.toml' absent.toml
refuses 'nothing to run was named'
refuses 'NOT_SET is not set here' --export NOT_SET -- true
refuses '1X is not the name of a variable' --export 1X=1 -- true
refuses 'DTOOL_RUN_ID is dtool.s own' --export DTOOL_RUN_ID=1 -- true
refuses 'nproc_per_node wants a number' --nproc_per_node 0 -- true
refuses 'nproc_per_node wants a number' --nproc_per_node two -- true
refuses 'seed' --seed -1 -- true
refuses 'unknwon' --unknwon -- true
expect_exit 0 dtool run --dry_run --json --runs_on "$DTOOL_LAB_HOSTS,203.0.113.1" -- true
expect_equal 4 "$(json 'len(d["machines"])')"
expect_exit 0 dtool run --dry_run --runs_on "$DTOOL_LAB_HOSTS" --seed 5 -- echo 'two words'
expect_output "^runs +echo 'two words'"
expect_equal "$before" "$(logins)"
expect_equal "" "$(find "$HOME/.dtool" -mindepth 1 ! -name config.toml 2>/dev/null || true)"  # the settings are the test's own
untouched

# What only the hosts know, and which of them
on 1 touch activate
on 3 touch activate
refuses '1 of 3 hosts failed: checking the hosts' --env_activate_path '~/activate' -- true
expect_error "^  ${address[1]}: --env_activate_path: there is no file /root/activate"
if [[ -x ${DTOOL_TRAINER:-} ]]; then
  refuses 'experiment digits with --config_kwargs: unknown key .train.epoch.$' --config_kwargs '{"train":{"epoch":3}}' digits
  expect_error '^hint: did you mean .epochs.'
fi
on 2 mkdir elsewhere
refuses '2 of 3 hosts failed' --no_sync --code_path '~/elsewhere' -- true
expect_error '^  .*\[1,3\]: there is no folder /root/elsewhere, and --no_sync sends no code'
on 1 /usr/bin/python3 -c 'import socket, time; s = socket.socket(); s.bind(("", 29777)); s.listen(); time.sleep(600)' >/dev/null 2>&1 &
eventually 10 on 1 bash -c ': </dev/tcp/127.0.0.1/29777'
refuses '1 of 3' --distributed_ip_and_port "${address[0]}:29777" -- true
expect_error "^  ${address[0]}: something listens on port 29777 already"
for host in 1 2 3; do on $host touch activate; done
fault hide h3 tail
refuses '1 of 3' --env_activate_path /root/activate -- true
expect_error "^  ${address[2]}: tail is not there"
expect_error "hint: on Debian: dtool command --command 'sudo apt-get install -y coreutils' --runs_on ${address[2]}"
fault unhide h3 tail
fault cut h2
began=$(date +%s%N)
refuses '1 of 3' --connect_timeout 4 -- true
# It is waited for once, and not again where the folders of the run are removed.
waited=$((($(date +%s%N) - began) / 1000000))
((waited >= 4000 && waited < 7500)) || fail "a silent host took $waited ms with --connect_timeout 4"
expect_error "^  ${address[1]}: "
expect_error '^nothing was started'
fault mend h2
untouched
expect_exit 2 timeout 60 "$DTOOL" run --json --runs_on "$DTOOL_LAB_HOSTS" --env_activate_path '~/absent' -- true
expect_equal "2 3 not_started" "$(json '"%d %d %s" % (d["exit_code"], len(d["failures"]), d["failures"][0]["failure"])')"

# A disk that is full from the start, and one that cannot take the log
on 2 mkdir -p .dtool/runs
disk_on 2 size=4k,nr_inodes=3 /root/.dtool/runs
run timeout 60 "$DTOOL" run --runs_on "$DTOOL_LAB_HOSTS" -- sleep 1000
((last_code == 1 || last_code == 2)) || fail 'a full disk went unnoticed'
expect_error "^  ${address[1]}: "
sudo_on 2 umount /root/.dtool/runs
untouched
expect_equal '' "$(on 1 pgrep -f 'sleep 1000' || true)"
on 2 touch /root/file
expect_exit 1 timeout 60 "$DTOOL" run --json --output_dir '~/file/out' --runs_on "$DTOOL_LAB_HOSTS" -- sleep 1000
expect_equal "1 ${address[1]}" "$(json '"%d %s" % (d["exit_code"], d["failures"][0]["host"])')"
expect_error '1 of 3 hosts failed: starting'
expect_error "^  ${address[1]}: cannot make the folder of /root/file/out/.*: Not a directory"
expect_error '^no process of the run is left'
expect_equal '' "$(on 1 pgrep -f 'sleep 1000' || true)"
untouched

# A program that is not there, or may not be executed: known before dtool says that it has started.
expect_exit 1 dtool run --runs_on "$DTOOL_LAB_HOSTS" -- nosuchprogram x
expect_error '198[0-9.]*\[1-3\]: nosuchprogram: no such program on this host$'
expect_error 'no process of the run is left'
untouched
if ! on 1 bash -c 'type -P python' && on 1 bash -c 'type -P python3' >/dev/null; then
  expect_exit 1 dtool run --runs_on "$DTOOL_LAB_HOSTS" -- python -c pass
  expect_error ': python: no such program on this host; python3 is there$'
  untouched
fi
for host in 1 2 3; do on "$host" sh -c 'mkdir -p there && touch there/code'; done
expect_exit 1 dtool run --runs_on "$DTOOL_LAB_HOSTS" --no_sync --code_path '~/there' -- ./code
expect_error '\./code may not be executed: chmod \+x'
untouched
expect_exit 1 dtool run --runs_on "$DTOOL_LAB_HOSTS" --no_sync --code_path '~/there' -- code
expect_error 'code is in the code folder: write \./code'
untouched
# An environment that fails is known before anything starts.
on 2 bash -c 'echo "return 3" > /root/activate'
for host in 1 3; do on "$host" touch /root/activate; done
expect_exit 2 dtool run --runs_on "$DTOOL_LAB_HOSTS" --env_activate_path '~/activate' -- true
expect_error "${address[1]}: --env_activate_path: /root/activate failed$"
untouched

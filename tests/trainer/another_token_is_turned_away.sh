#!/bin/bash
# SPDX-License-Identifier: MIT
# A machine with another token than machine 0 ends at once, with 2, and says so, and machine 0 goes on. So does one whose token
# is no secret.
. "$(dirname "$0")/harness.sh"
endless_experiment e.toml
listener=127.0.0.1:$(free_port)
(umask 077; echo 0123456789abcdef0123456789abcdef > token; echo 0123456789abcdef0123456789abcdee > another; echo short > short)
cp token open
chmod 644 open

start() {  # $1: machine, $2: token, $3: log
  DTOOL_TOKEN_FILE=$2 "$trainer" e.toml --machine_id "$1" --distributed_nodes 2 --distributed_ip_and_port "$listener" \
    --output_dir out > "$3.log" 2>&1 &
  started+=($!)
}
refused() {  # $1: token, $2: pattern
  start 1 "$1" refused
  await 60 "the end of machine 1 with $1" is_gone "${started[-1]}"
  await_exit "${started[-1]}"
  [ $code = 2 ] || fail "$1: exit code $code"
  head -n 1 refused.log | grep -q "^dtool-trainer: $2" || fail "$1: it does not say: $2"
}
start 0 token zero
refused another "rank 1 on machine 1 (.*) failed with exit code 2: .*$listener"
refused '' "rank 1 on machine 1 (.*) failed with exit code 2: .*$listener"
refused open "DTOOL_TOKEN_FILE=open: others may read or write it"
refused absent "DTOOL_TOKEN_FILE=absent: No such file"
refused short "DTOOL_TOKEN_FILE=short: it holds no token"
start 1 token one
await 60 "training of the right two" is_training zero.log

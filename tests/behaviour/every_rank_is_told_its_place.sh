#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What `dtool run` gives a program on every rank: env:// variables, one seed, the interface that reaches the listener;
# over one SSH connection a host, through a talkative and slow shell start-up file; and what it leaves on the hosts.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"

logins() { grep -c '^Accepted' "$DTOOL_LAB_FOLDER/host$1/sshd.log" || true; }
# shellcheck disable=SC2016
show='echo "seen: $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $DTOOL_MACHINE_ID $MASTER_ADDR $MASTER_PORT $DTOOL_SEED $GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME $DTOOL_RUN_ID $EXTRA"'
# The seen lines, sorted by rank, without the two last words
seen() { grep -o 'seen: .*' "$1" | sort -n -k2 | cut -d' ' -f2-12; }

printf 'echo beware >&2\nsleep 1\n' >"$DTOOL_LAB_FOLDER/host2/root/.bashrc"
before=$(logins 1)
# A card whose name begins as that of the right one: NCCL takes it too unless it is told an exact name.
sudo_on 2 sh -c 'ip link add eth00 type veth peer name other00 && ip address add 10.250.250.1/24 dev eth00 && ip link set eth00 up'
touch code
expect_exit 0 dtool run --follow --runs_on "$DTOOL_LAB_HOSTS" --seed 7 --nproc_per_node 2 --distributed_ip_and_port "${address[0]}:29511" --export EXTRA=more -- bash -c "$show"
expect_equal 1 $(($(logins 1) - before))
expect_equal 1 "$(logins 2)"
run_id=$(ls "$HOME/.dtool/killfiles")
run_id=${run_id%.killfile}
wanted=$(for rank in 0 1 2 3 4 5; do
  echo "$rank $((rank % 2)) 6 2 $((rank / 2)) $((rank / 2)) ${address[0]} 29511 7 eth0 =eth0"
done)
expect_equal "$wanted" "$(seen "$out")"
expect_equal 6 "$(grep -c "$run_id more\$" "$out")"
expect_error "$run_id: started on .*; 6 processes, seed 7, rank 0 listens on ${address[0]}:29511"

# By its name the first host is meant, at its address.
expect_exit 0 dtool run --json --follow --runs_on h1,h2 --distributed_ip_and_port h1:29512 -- bash -c 'echo "seen: $RANK $MASTER_ADDR $MASTER_PORT"'
expect_equal "${address[0]}:29512" "$(json 'd["distributed_ip_and_port"]')"
by_name=$(json 'd["run_id"]')
no_process_of_it() { (expect_no_process_with "$by_name") 2>/dev/null; }
eventually 15 no_process_of_it
expect_exit 0 dtool kill "$by_name" --yes --delete

# What is left on a host tells how the run did
state=.dtool/runs/$run_id/machine2
expect_equal 0 "$(on 3 cat "$state/exit_code")"
expect_equal "$(on 3 cat /proc/sys/kernel/random/boot_id)" "$(on 3 cut -d' ' -f3 "$state/process")"
expect_equal 2 "$(on 3 grep -c '^r[45]: seen: ' "$state/log")"
expect_equal "/root/here/experiment_output/$run_id/machine2.log" "$(on 3 readlink -f "$state/log")"
on 3 test -e "$state/script"
expect_equal 'drwx------' "$(on 3 stat -c %A "$state")"
expect_exit 0 dtool list --json
expect_equal "$run_id 3" "$(json '"%s %d" % (d["runs"][0]["run_id"], d["runs"][0]["machines"])')"
expect_exit 0 dtool list
expect_output "^$run_id +20.* (ago|now) .* 3  "

# A shell that prints where nobody reads: what comes before rsync's own words is left out.
printf 'echo welcome\nprintf "no line end"\n' >>"$DTOOL_LAB_FOLDER/host2/root/.bashrc"
echo 'echo of the new tree' >new.sh
expect_exit 0 dtool run --follow --runs_on "${address[1]},${address[2]}" --extra_tag greeted -- bash -c ". ./new.sh; $show"
expect_equal 2 "$(seen "$out" | wc -l)"
expect_equal 2 "$(grep -c ': of the new tree$' "$out")"
expect_exit 0 dtool fetch bash_greeted "$work/fetched"
expect_equal 2 "$(cat "$work"/fetched/machine?/machine?.log | grep -c 'of the new tree')"
rm "$DTOOL_LAB_FOLDER/host2/root/.bashrc"

# Slots of a hostfile; a port that is free; a seed drawn once for all
printf '%s slots=1\n# none\n\n%s slots=3\n' "${address[0]}" "${address[1]}" >hosts
expect_exit 0 dtool run --follow --json --hostfile hosts -- bash -c "$show"
for machine in 0 1; do on $((machine + 1)) cat "here/experiment_output/$(json 'd["run_id"]')/machine$machine.log"; done >"$work/logs"
listener=$(json 'd["distributed_ip_and_port"]') seed=$(json 'd["seed"]')
[[ $listener == "${address[0]}":* ]] || fail "the listener is $listener"
expect_equal 4 "$(json 'd["world_size"]')"
expect_equal 0 "$(json 'd["exit_code"]')"
wanted=$(echo "0 0 4 1 0 0 ${listener/:/ } $seed eth0 =eth0"
  for rank in 1 2 3; do echo "$rank $((rank - 1)) 4 3 1 1 ${listener/:/ } $seed eth0 =eth0"; done)
expect_equal "$wanted" "$(seen "$work/logs")"

# This machine, without SSH and without --runs_on
expect_exit 0 dtool run --follow --no_sync -s 3 -- bash -c "$show"
expect_output '^machine0: seen: 0 0 1 1 0 0 127\.0\.0\.1 [0-9]+ 3  '
# With another machine, which it knows by its SSH configuration alone, it is reached where that one sees it.
own=$(ip -o route get "${address[0]}" | sed -n 's/.* src \([^ ]*\).*/\1/p')
expect_exit 0 timeout 60 "$DTOOL" run --follow --runs_on local,h1 -- bash -c "$show"
expect_equal 2 "$(seen "$out" | cut -d' ' -f7 | grep -cxF "$own")"
expect_exit 2 dtool run --runs_on local,h1 --distributed_ip_and_port 127.0.0.1:29511 -- true
expect_error '^dtool: rank 0 on local would listen on 127.0.0.1, where h1 cannot reach it$'
expect_error '^hint: name another host first in --runs_on, or another address of local: --distributed_ip_and_port IP:PORT$'
expect_error '^nothing was started$'
expect_exit 0 dtool kill --all --yes --delete

# The run ends with machine 0, whose end is good; what still runs elsewhere is ended, and that is no failure.
# shellcheck disable=SC2016
expect_exit 0 timeout 60 "$DTOOL" run --follow --fill --runs_on "${address[0]},${address[1]}" --ends_with 0 --nproc_per_node 2 -- \
  bash -c 'echo "{machine_id} of {machines}, {rank}: $OMP_NUM_THREADS"; [ {machine_id} = 0 ] || exec sleep 300'
cores=$(on 1 nproc)
expect_output "0 of 2, 1: $((cores > 2 ? cores / 2 : 1))\$"
expect_error ': ended on '
expect_exit 0 dtool show last
expect_output "^machine 0 .*2 processes, OMP_NUM_THREADS $((cores > 2 ? cores / 2 : 1)), "
# Processes of their own: one that fails ends no other.
# shellcheck disable=SC2016
expect_exit 1 dtool run --follow --fill --independent --runs_on "${address[0]}" --nproc_per_node 2 -- \
  bash -c 'if [ {rank} = 1 ]; then exit 3; fi; sleep 1; echo "{rank} is $RANK of $WORLD_SIZE"'
expect_output '0 is 0 of 1$'
expect_exit 0 dtool kill --all --yes --delete

# GPUs: `auto` starts a process for each that the run's processes will see.
mkdir -p "$DTOOL_LAB_FOLDER/host1/root/gpus"
printf '#!/bin/sh\nfor gpu in 0 1 2 3; do echo "GPU $gpu: A (UUID: GPU-$gpu$gpu)"; done\n' >"$DTOOL_LAB_FOLDER/host1/root/gpus/nvidia-smi"
chmod +x "$DTOOL_LAB_FOLDER/host1/root/gpus/nvidia-smi"
printf 'export PATH=$HOME/gpus:$PATH\n' >"$DTOOL_LAB_FOLDER/host1/root/.bashrc"
# shellcheck disable=SC2016
counted() { expect_exit 0 dtool run --follow --no_sync --code_path here --runs_on h1 "$@" -- sh -c 'echo "$WORLD_SIZE of $CUDA_VISIBLE_DEVICES"'; }
counted
expect_output ': 4 of $'
counted --gpus 0,2
expect_output ': 2 of 0,2$'
counted --export CUDA_VISIBLE_DEVICES=3
expect_output ': 1 of 3$'
counted --gpus 0,2 --nproc_per_node 3
expect_output ': 3 of 0,2$'
expect_exit 2 dtool run --no_sync --code_path here --runs_on h1 --gpus 0,7 -- true
expect_error 'h1: --gpus 0,7: this host has no GPU 7 \(it has 4\)'
expect_exit 2 dtool run --no_sync --code_path here --runs_on h1 --gpus all -- true
expect_error '--gpus: all names no GPU'
expect_exit 2 dtool run --no_sync --code_path here --runs_on h1 --gpus 0,GPU-11 -- true
expect_error '--gpus: GPU-11 is not of the kind of 0'
expect_exit 2 dtool run --no_sync --code_path here --runs_on h1 --gpus 0 --export HIP_VISIBLE_DEVICES=0 -- true
expect_error '--gpus sets HIP_VISIBLE_DEVICES, and --export'
expect_exit 2 dtool run --no_sync --code_path here --runs_on h1 --gpus 0 --export CUDA_VISIBLE_DEVICES=0 -- true
expect_error '--gpus sets CUDA_VISIBLE_DEVICES, and --export'
expect_exit 0 dtool kill --all --yes --delete

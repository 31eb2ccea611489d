#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `--torchrun` runs the real torchrun once a machine: it gives each machine the ranks that belong to its id and meets at
# the listener; a rank that fails fails the run, and kill ends torchrun's workers too.
# shellcheck disable=SC2088  # it is for the hosts to expand
source "$(dirname "$0")/harness.sh"
needs_isolation
/usr/bin/python3 -c 'import torch.distributed.run' 2>/dev/null || needs_program python3-torch
lab 2
hosts=$DTOOL_LAB_HOSTS

# Debian's torchrun 1.13 fails on Python 3.11, whose flags no longer list their zero: only this one function is replaced.
for i in 1 2; do
  mkdir -p "$DTOOL_LAB_FOLDER/host$i/root/venv/bin"
  cat >"$DTOOL_LAB_FOLDER/host$i/root/venv/bin/torchrun" <<'S'
#!/usr/bin/python3
import sys
import torch.distributed.elastic.multiprocessing.api as api
if api.Std.from_str("0") is None:
    api.Std.from_str = classmethod(lambda cls, text: cls(int(text)))
from torch.distributed.run import main
print("torchrun is given " + " ".join(sys.argv[1:]), flush=True)
main()
S
  chmod +x "$DTOOL_LAB_FOLDER/host$i/root/venv/bin/torchrun"
  echo 'PATH=~/venv/bin:$PATH' >"$DTOOL_LAB_FOLDER/host$i/root/venv/bin/activate"
done

cat >train.py <<'S'
import os, sys, time
import torch
import torch.distributed as dist
env = os.environ
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(total)
# In one piece, or two ranks' lines may run into each other.
os.write(1, (f"rank {dist.get_rank()} of {dist.get_world_size()}, {env['LOCAL_RANK']} of {env['LOCAL_WORLD_SIZE']} on machine"
      f" {env['DTOOL_MACHINE_ID']}: the sum is {total.item():.0f}, words {sys.argv[1:]}\n").encode())
dist.barrier()
if "wait" in sys.argv:
    time.sleep(1000)
if "crowd" in sys.argv:
    print(f"rank {dist.get_rank()} begins", flush=True)
    for i in range(10000):
        dist.all_reduce(total)
        if i == 9 and dist.get_rank() == 3:
            raise ValueError("rank 3 has had enough")
if "fail" in sys.argv:
    if dist.get_rank() == 2:
        raise ValueError("the third rank has had enough")
    time.sleep(1000)
S
expect_exit 0 timeout 60 "$DTOOL" run --json --follow --runs_on "$hosts" --env_activate_path '~/venv' --nproc_per_node 2 --torchrun -- train.py --lr 0.1
for rank in 0 1 2 3; do
  expect_error "^machine$((rank / 2)): rank $rank of 4, $((rank % 2)) of 2 on machine $((rank / 2)): the sum is 10, words \['--lr', '0.1'\]$"
done
listener=$(json "d['distributed_ip_and_port']")
for i in 0 1; do
  expect_error "^machine$i: torchrun is given --nnodes 2 --node_rank $i --nproc_per_node 2 --rdzv_backend static --rdzv_endpoint $listener --max_restarts 0 train.py"
done
expect_equal "{'env_activate_path': '~/venv', 'torchrun': True}" "$(json "d['environment']")"

# Words of torchrun's own come through.
echo 'import os; print("a module of rank", os.environ["RANK"])' >module.py
expect_exit 0 timeout 60 "$DTOOL" run --follow --runs_on "$hosts" --env_activate_path '~/venv' --torchrun -- --max_restarts 2 -m module
expect_output '^machine1: a module of rank 1$'

expect_exit 1 timeout 60 "$DTOOL" run --json --follow --runs_on "$hosts" --env_activate_path '~/venv' --nproc_per_node 2 --torchrun -- train.py fail
id=$(json "d['run_id']")
expect_equal 'rank 2 on machine 1 (198' "$(json "d['cause'][:24]")"
expect_equal 'ended with exit code 1: ValueError: the third rank has had enough' "$(json "d['cause'].split(') ')[1]")"
expect_error 'ValueError: the third rank has had enough'
eventually 10 expect_no_process_with "$id"

# Those that lose it say so, and are not the cause; its own lines are shown.
expect_exit 1 timeout 60 "$DTOOL" run --json --follow --runs_on "$hosts" --env_activate_path '~/venv' --nproc_per_node 2 --torchrun -- train.py crowd
[[ $(json "d['cause']") =~ ^rank\ 3\ on\ machine\ 1\ .*ValueError:\ rank\ 3\ has\ had\ enough$ ]] || fail "the cause is $(json "d['cause']")"
expect_exit 1 dtool status
expect_output '^the last lines of rank 3 on machine 1 \(.*\):$'
expect_output '^  \| ValueError: rank 3 has had enough$'
expect_no_output '^  .*(by peer|Broken pipe)'

# Also through a Python of the user's choice.
for i in 1 2; do
  # shellcheck disable=SC2016
  printf '#!/bin/sh\necho "chosen, $PYTHON_EXEC"; exec /usr/bin/python3 "$@"\n' >"$DTOOL_LAB_FOLDER/host$i/root/chosen"
  chmod +x "$DTOOL_LAB_FOLDER/host$i/root/chosen"
done
expect_exit 1 timeout 60 "$DTOOL" run --json --follow --runs_on "$hosts" --env_activate_path '~/venv' --export PYTHON_EXEC=/root/chosen --nproc_per_node 2 --torchrun -- train.py crowd
[[ $(json "d['cause']") =~ ^rank\ 3\ on\ machine\ 1\ .*ValueError:\ rank\ 3\ has\ had\ enough$ ]] || fail "the cause is $(json "d['cause']")"
expect_equal 4 "$(grep -c ': chosen, /root/chosen$' "$err")"

# Programs that torchrun starts without a Python have logs of their own as well.
cat >tool.sh <<'S'
#!/bin/bash
[[ $RANK != 3 ]] || { sleep 1; echo "ValueError: the tool of rank 3 has had enough"; exit 4; }
echo "$0 $*"
while sleep 0.02; do echo "rank $RANK goes on"; done
S
chmod +x tool.sh
expect_exit 1 timeout 60 "$DTOOL" run --json --follow --runs_on "$hosts" --env_activate_path '~/venv' --nproc_per_node 2 --torchrun -- --no_python ./tool.sh --fast
[[ $(json "d['cause']") =~ ^rank\ 3\ .*\ 4:\ ValueError:\ the\ tool\ of\ rank\ 3\ has\ had\ enough$ ]] || fail "the cause is $(json "d['cause']")"
[[ $(json "d['run_id']") == tool.sh_* ]] || fail "the run is $(json "d['run_id']")"
expect_equal 3 "$(grep -c ': ./tool.sh --fast$' "$err")"

expect_exit 0 dtool run --json --runs_on "$hosts" --env_activate_path '~/venv' --nproc_per_node 2 --torchrun -- train.py wait
id=$(json "d['run_id']")
eventually 60 grep -q 'the sum is' "$DTOOL_LAB_FOLDER/host2/root/here/experiment_output/$id/machine1.log"
expect_exit 0 dtool kill "$id" --yes --delete
expect_no_process_with "$id"

# Mistakes.
for interpreter in python3 /usr/bin/python; do
  expect_exit 2 dtool run --runs_on "$hosts" --torchrun -- "$interpreter" train.py
  expect_error "--torchrun starts Python itself: leave $interpreter away"
done
expect_exit 2 dtool run --runs_on "$hosts" --torchrun digits
expect_error '--torchrun wants a script'
fault hide h2 torchrun
fault hide h2 python3
expect_exit 2 dtool run --runs_on "$hosts" --torchrun -- train.py
expect_error '^dtool: 1 of 2 hosts failed'
expect_error '--torchrun: neither torchrun nor a Python with torch is there'

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that calls MPI itself, as Horovod does, finds its ranks under --launcher mpi, and they speak to each other: on one host
# and between hosts, where each host has a second network with the same address on all, as container engines make them.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program mpirun
/usr/bin/python3 -c 'import mpi4py' 2>/dev/null || skip 'needs mpi4py (python3-mpi4py)'
lab 3
let_h1_reach_the_others
for host in h1 h2 h3; do
  fault sudo $host ip link add docker0 type veth peer name container0
  fault sudo $host ip addr add 172.17.0.1/16 dev docker0
  fault sudo $host ip link set docker0 up
  fault sudo $host ip link set container0 up
done
cat >sum.py <<'END'
import os
import sys
from mpi4py import MPI

world = MPI.COMM_WORLD
numbers = [world.allreduce(world.rank + 1), world.allreduce(float(world.rank), op=MPI.MAX)]
assert world.rank == int(os.environ["RANK"]) and world.size == int(os.environ["WORLD_SIZE"])
beyond = world.sendrecv(bytes([world.rank]) * 1_000_000, (world.rank + 1) % world.size, source=(world.rank - 1) % world.size)
# One write: print() makes one for each word where nothing is buffered, and the ranks of a machine share its log.
sys.stdout.write(f"rank {world.rank} sums {numbers} heard {beyond[999_999]}\n")
END
expect_exit 0 timeout 120 "$DTOOL" run --launcher mpi --runs_on 'h[1-3]' --nproc_per_node 2 --follow -- /usr/bin/python3 sum.py
for ((rank = 0; rank < 6; rank++)); do
  expect_output "^machine$((rank / 2)) r$rank: rank $rank sums \[21, 5\.0\] heard $(((rank + 5) % 6))\$"
done

# One of them fails while the others wait for it in MPI: all are ended, and it is named.
echo 'from mpi4py import MPI; import sys; MPI.COMM_WORLD.rank == 3 and sys.exit("rank 3 gives up"); MPI.COMM_WORLD.barrier()' >fail.py
expect_exit 1 timeout 120 "$DTOOL" run --launcher mpi --runs_on 'h[1-3]' --nproc_per_node 2 --follow -- /usr/bin/python3 -m mpi4py fail.py
expect_error 'the cause: rank 3 on machine 1 \(h2\) ended with exit code 1: rank 3 gives up'
eventually 10 expect_no_process_with "$(basename "$(find "$HOME/.dtool/killfiles" -name '*.killfile' -printf '%T@ %p\n' | sort -n | tail -n 1)" .killfile)"

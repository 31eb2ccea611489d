#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A script of PyTorch's own, with torch.distributed's env:// start-up, runs on three hosts after `--` as it is.
source "$(dirname "$0")/harness.sh"
needs_isolation
/usr/bin/python3 -c 'import torch' 2>/dev/null || { [[ -z ${CI:-} ]] || fail 'python3-torch is not installed: tests/dependencies test'; skip 'needs python3-torch'; }
lab 3

cat >train.py <<'END'
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
torch.manual_seed(int(os.environ['DTOOL_SEED']))
dist.init_process_group('gloo')
rank, size = dist.get_rank(), dist.get_world_size()
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
generator = torch.Generator().manual_seed(rank)
for step in range(50):
    inputs = torch.randn(16, 4, generator=generator)
    loss = ((model(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
mean = weights.clone()
dist.all_reduce(mean)
assert torch.equal(mean / size, weights) or (mean / size - weights).abs().max() < 1e-6
print('rank %d of %d: loss %.4f' % (rank, size, loss.item()))
assert loss.item() < 0.5
END
expect_exit 0 timeout 150 "$DTOOL" run --follow --runs_on "$DTOOL_LAB_HOSTS" -- /usr/bin/python3 train.py
for rank in 0 1 2; do expect_output "^machine$rank: rank $rank of 3: loss 0\."; done

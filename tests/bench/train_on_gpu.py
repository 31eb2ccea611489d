#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's part of tests/bench/gpu, a line of JSON for each way to train on the GPU:

train_on_gpu.py network HIDDEN BATCH PRECISION SECONDS WITHOUT    a classifier of 784 values, with Adam and the data on the GPU
train_on_gpu.py learner EMBEDDING HIDDEN SAMPLERS SECONDS WITHOUT  ObjectNav's policy: 4 passes of 4 mini-batches over a rollout

WITHOUT names the ways to leave out, with commas.
"""
import contextlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

GPU = torch.device("cuda")
SAMPLES = 60_000
STEPS = 128  # of a rollout
ROWS, BYTES, ACTIONS = 1387, 65, 6


def tell(what, rate):
    print(json.dumps({"what": what, "rate": rate}), flush=True)


def measure(work, seconds):
    """Calls of `work` in a second; it has been warmed up."""
    torch.cuda.synchronize()
    begin, calls = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        work()
        calls += 1
        torch.cuda.synchronize()
    return calls / (time.perf_counter() - begin)


def connect_alone():
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "WORLD_SIZE": "1", "RANK": "0"}
    dist.init_process_group("nccl", device_id=torch.device("cuda", 0))


def network(hidden, batch, precision, seconds, without):
    inputs = torch.rand(SAMPLES, 784, device=GPU)
    labels = torch.randint(10, (SAMPLES,), device=GPU)
    autocast = (lambda: torch.autocast("cuda", torch.bfloat16)) if precision == "bfloat16" else contextlib.nullcontext

    def make_model():
        torch.manual_seed(1)
        sizes = [784, *hidden, 10]
        layers = [layer for pair in zip(sizes, sizes[1:]) for layer in (torch.nn.Linear(*pair), torch.nn.ReLU())]
        return torch.nn.Sequential(*layers[:-1]).to(GPU)

    def rate(way):
        model = make_model()
        compiled = way.startswith("compile")
        whole = way == "compile_all"
        optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(1e-3, device=GPU) if whole else 1e-3, fused=not whole, capturable=whole)
        net = DistributedDataParallel(model) if way == "ddp" else torch.compile(model, mode="reduce-overhead") if compiled else model
        update = torch.compile(optimizer.step, mode="reduce-overhead") if whole else optimizer.step

        def step(samples):
            with autocast():
                loss = F.cross_entropy(net(inputs[samples]), labels[samples])
            optimizer.zero_grad(set_to_none=not whole)
            loss.backward()
            update()

        def epoch():
            for samples in torch.randperm(SAMPLES, device=GPU).split(batch):
                if len(samples) == batch:  # the last one would be compiled anew
                    step(samples)

        for samples in torch.randperm(SAMPLES, device=GPU)[:40 * batch].split(batch):
            step(samples)
        return measure(epoch, seconds) * (SAMPLES - SAMPLES % batch)

    def recorded_rate():
        """As https://pytorch.org/docs/stable/notes/cuda.html#whole-network-capture."""
        model = make_model()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)
        images, targets = torch.zeros(batch, 784, device=GPU), torch.zeros(batch, dtype=torch.long, device=GPU)

        def step():
            optimizer.zero_grad(set_to_none=True)
            with autocast():
                loss = F.cross_entropy(model(images), targets)
            loss.backward()
            optimizer.step()

        beside = torch.cuda.Stream()
        with torch.cuda.stream(beside):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()

        def epoch():
            for samples in torch.randperm(SAMPLES, device=GPU).split(batch):
                if len(samples) == batch:
                    torch.index_select(inputs, 0, samples, out=images)
                    torch.index_select(labels, 0, samples, out=targets)
                    graph.replay()

        epoch()
        return measure(epoch, seconds) * (SAMPLES - SAMPLES % batch)

    connect_alone()
    ways = {"eager": "PyTorch, eager", "ddp": "PyTorch, DistributedDataParallel", "compile": "PyTorch, torch.compile",
            "compile_all": "PyTorch, torch.compile, the optimizer too", "graph": "PyTorch, the step recorded by hand"}
    for way, what in ways.items():
        if way in without:
            continue
        try:
            tell(what, recorded_rate() if way == "graph" else rate(way))
        except Exception as problem:  # another way may work
            print(f"{what}: {problem}", file=sys.stderr)
            sys.stderr.flush()
    dist.destroy_process_group()


class Policy(torch.nn.Module):
    def __init__(self, embedding, hidden, bytes_):
        super().__init__()
        self.first = torch.arange(bytes_, device=GPU) * (ROWS // bytes_)
        self.table = torch.nn.EmbeddingBag(ROWS, embedding, mode="sum")
        self.gru = torch.nn.GRU(embedding, hidden)
        self.heads = torch.nn.Linear(hidden, ACTIONS + 1)

    def forward(self, observations, memory, keep, cuts):
        """As AllenAct: the sequences of all samplers are cut wherever an episode of one begins."""
        steps, samplers, bytes_ = observations.shape
        seen = F.relu(self.table((observations + self.first).view(-1, bytes_))).view(steps, samplers, -1)
        parts = []
        for begin, end in zip(cuts, cuts[1:]):
            out, memory = self.gru(seen[begin:end], memory * keep[begin].view(1, -1, 1))
            parts.append(out)
        both = self.heads(torch.cat(parts))
        return both[..., :ACTIONS], both[..., ACTIONS]


def learner(embedding, hidden, samplers, seconds):
    """A rollout whose episodes end now and then, and the passes over it; the data is on the GPU."""
    bytes_, part = BYTES, samplers // 4
    torch.manual_seed(1)
    policy = Policy(embedding, hidden, bytes_).to(GPU)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3, fused=True)
    observations = torch.randint(ROWS // bytes_, (STEPS, samplers, bytes_), device=GPU)
    keep = (torch.rand(STEPS, samplers) > 0.01).float()  # episodes of a hundred steps
    on_gpu = keep.to(GPU)
    memory = torch.zeros(1, samplers, hidden, device=GPU)
    actions = torch.randint(ACTIONS, (STEPS, samplers), device=GPU)
    old, values, advantages, returns = (torch.randn(STEPS, samplers, device=GPU) for _ in range(4))

    def step(chosen):
        ends = (keep[:, chosen] == 0).any(1).nonzero().flatten().tolist()
        cuts = sorted({0, STEPS, *ends})
        index = chosen.to(GPU)

        def of(all_):
            return all_.index_select(1, index)

        logits, value = policy(of(observations), of(memory), of(on_gpu), cuts)
        logs = F.log_softmax(logits, -1)
        ratio = (logs.gather(-1, of(actions).unsqueeze(-1)).squeeze(-1) - of(old)).exp()
        gain = torch.minimum(ratio * of(advantages), ratio.clamp(0.9, 1.1) * of(advantages)).mean()
        moved = of(values) + (value - of(values)).clamp(-0.1, 0.1)
        error = 0.5 * torch.maximum((value - of(returns)).square(), (moved - of(returns)).square()).mean()
        entropy = -(logs.exp() * logs).sum(-1).mean()
        optimizer.zero_grad()
        (-gain + 0.5 * error - 0.01 * entropy).backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()

    def update():
        for _ in range(4):
            for chosen in torch.randperm(samplers).split(part):
                step(chosen)

    update()
    tell("PyTorch, eager, nn.GRU (the learner alone)", measure(update, seconds) * STEPS * samplers)


def main():
    torch.set_float32_matmul_precision("highest")
    if sys.argv[1] == "network":
        network(json.loads(sys.argv[2]), int(sys.argv[3]), sys.argv[4], float(sys.argv[5]), sys.argv[6].split(","))
    else:
        learner(*map(int, sys.argv[2:5]), float(sys.argv[5]))


main()

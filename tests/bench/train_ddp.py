#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The seed's MNIST network as a PyTorch user writes it: one rank under DistributedDataParallel, started with the variables of
env://. Called by tests/bench/trainer: `train_ddp.py FOLDER BATCHES EPOCHS SEED`, where FOLDER has the four IDX files and BATCHES is
`loader` (DataLoader over a TensorDataset), `indexed` (tensors indexed by hand) or `plain` (the same without
DistributedDataParallel, for one rank). Rank 0 prints a JSON object: when the first step was done, samples/s of each epoch over all
ranks, test accuracy.
"""
import json
import os
import sys
import time

import numpy
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

BATCH = 64


def read_idx(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        content = file.read()
    dimensions = content[3]
    shape = [int.from_bytes(content[4 + 4 * i:8 + 4 * i], "big") for i in range(dimensions)]
    return torch.from_numpy(numpy.frombuffer(content, numpy.uint8, offset=4 + 4 * dimensions).reshape(shape).copy())


def read_set(folder, name):
    images = read_idx(folder, name + "-images-idx3-ubyte").flatten(1).float().div_(255)
    return images, read_idx(folder, name + "-labels-idx1-ubyte").long()


def loader_batches(images, labels, rank, size, seed):
    sampler = DistributedSampler(TensorDataset(images, labels), size, rank, shuffle=True, seed=seed)
    loader = DataLoader(sampler.dataset, batch_size=BATCH, sampler=sampler)

    def epoch(number):
        sampler.set_epoch(number)
        return loader

    return epoch


def indexed_batches(images, labels, rank, size, seed):
    def batches(order):
        for begin in range(0, len(order), BATCH):
            samples = order[begin:begin + BATCH]
            yield images[samples], labels[samples]

    def epoch(number):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed * 1000 + number))
        return batches(order[rank:len(order) - len(order) % size:size])

    return epoch


def accuracy(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).double().mean().item()


def main():
    folder, kind, epochs, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    images, labels = read_set(folder, "train")
    network = torch.nn.Sequential(torch.nn.Linear(784, 50), torch.nn.ReLU(), torch.nn.Linear(50, 10))
    model = network if kind == "plain" else DistributedDataParallel(network)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3 * size)
    make = loader_batches if kind == "loader" else indexed_batches
    batches_of = make(images, labels, rank, size, seed)

    first_step, rates, losses = None, [], []
    for epoch in range(epochs):
        batches = batches_of(epoch)
        begin, samples = time.perf_counter(), 0
        for step, (inputs, targets) in enumerate(batches):
            loss = criterion(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(targets)
            if first_step is None:
                first_step = time.time()
            if step % 100 == 99:
                losses.append(loss.item())
        rates.append(samples * size / (time.perf_counter() - begin))
    if rank == 0:
        score = accuracy(network, *read_set(folder, "t10k"))
        print(json.dumps({"first_step": first_step, "rates": rates, "accuracy": score}), flush=True)
    dist.barrier()


main()

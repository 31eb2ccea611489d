# SPDX-License-Identifier: MIT
"""What the peers of tests/bench/ppo share: the network before the heads, and how far a run has come."""
import collections
import json
import os
import time

import numpy
import torch

import ppo_cpu

CODES = 11  # MiniGrid's kinds of objects; its colours and states are fewer
EPISODES = 100  # the return is the mean over so many, the last ones


def initialised(layer, scale=2 ** 0.5):
    torch.nn.init.orthogonal_(layer.weight, scale)
    torch.nn.init.zeros_(layer.bias)
    return layer


class Codes(torch.nn.Module):
    """A row of numbers for each code of each place, added up: dtool's way, which is sooner than one number a code."""

    def __init__(self, places, width):
        super().__init__()
        self.rows = torch.nn.EmbeddingBag(places * CODES, width, mode="sum")
        torch.nn.init.orthogonal_(self.rows.weight, 2 ** 0.5)
        self.register_buffer("offsets", torch.arange(places) * CODES)

    def forward(self, observations):
        return self.rows(observations.flatten(1).long() + self.offsets)


def trunk(kind, shape):
    """The layers for an observation of this shape, and the width of what they give. They get pictures as [channels, rows, columns]."""
    nn = torch.nn
    if kind == "mlp":
        return nn.Sequential(initialised(nn.Linear(shape[0], 64)), nn.Tanh(), initialised(nn.Linear(64, 64)), nn.Tanh()), 64
    if kind == "codes":
        return nn.Sequential(Codes(int(numpy.prod(shape)), 128), nn.ReLU()), 128
    first = nn.AvgPool2d(2) if kind == "pooled_half_nature" else nn.Identity()
    layers = nn.Sequential(first, initialised(nn.Conv2d(shape[-1], 16, 8, 4)), nn.ReLU(), initialised(nn.Conv2d(16, 32, 4, 2)), nn.ReLU(),
                           initialised(nn.Conv2d(32, 32, 3, 1)), nn.ReLU(), nn.Flatten())
    with torch.no_grad():
        width = layers(torch.zeros(1, shape[-1], *shape[:2])).shape[1]
    return nn.Sequential(*layers, initialised(nn.Linear(width, 256)), nn.ReLU()), 256


class Progress:
    """Episodes and seconds from the first step on, of one of `world` processes that are alike. The rate is that of all but the first
    tenth of the rollouts. The process has a session of its own."""

    def __init__(self, count, world, task):
        self.world, self.steps = world, 0
        self.threshold, self.scale = task["threshold"], task.get("reward_scale", 1)
        self.returns, self.ended = numpy.zeros(count), collections.deque(maxlen=EPISODES)
        self.begin, self.cpu = time.perf_counter(), []
        self.points, self.reached = [], None

    def step(self, rewards, ended):
        self.steps += len(rewards) * self.world
        self.returns += rewards / self.scale
        self.ended.extend(self.returns[ended])
        self.returns[ended] = 0

    def rollout_done(self):
        self.points.append((self.steps, time.perf_counter() - self.begin))
        self.cpu.append(ppo_cpu.of_session(os.getsid(0)) * self.world)
        if self.reached is None and len(self.ended) == EPISODES and numpy.mean(self.ended) >= self.threshold:
            self.reached = self.points[-1]

    def tell(self):
        first, last = self.points[len(self.points) // 10], self.points[-1]
        per_cpu_second = (last[0] - self.points[0][0]) / (self.cpu[-1] - self.cpu[0])
        print(json.dumps({"rate": (last[0] - first[0]) / (last[1] - first[1]), "per_cpu_second": per_cpu_second, "reached": self.reached,
                          "last_return": float(numpy.mean(self.ended)) if self.ended else None}), flush=True)

# SPDX-License-Identifier: MIT
"""Prints what the two-stage pipeline of AllenAct's tutorial on several nodes must give, worked out from its prose in
exact arithmetic; tests/trainer/pipeline_test.cpp compares.

A line: samplers nodes steps small_batch_steps | multiplier of mini-batches, multiplier of repeats | time:factor ...
"""
import math
from fractions import Fraction


def multipliers(samplers, nodes):
    """The largest number of equal parts of the samplers, two samplers in each at least, that nodes can ask for; and
    the fewest repeats with which as many updates are made as on so many single nodes."""
    parts = max([d for d in range(1, samplers // 2 + 1) if samplers % d == 0 and d <= nodes], default=1)
    repeats = 1
    while repeats * parts < nodes:
        repeats += 1
    return parts, repeats


def factor(time, steps, small_batch_steps, nodes):
    """The line that falls from 1 to 0 over the run; after the transition sqrt(nodes) times that line."""
    def line(t):
        return 1 - Fraction(t, steps)

    begin = small_batch_steps * 102 // 100
    end = begin + math.floor(Fraction(2, 3) * nodes * steps / 300)
    if time <= begin:
        return float(line(time))
    if time >= end:
        return math.sqrt(nodes) * float(max(line(time), 0))
    share = Fraction(time - begin, end - begin)
    return float((1 - share) * line(begin)) + float(share * line(end)) * math.sqrt(nodes)


for samplers in (1, 2, 7, 12, 60):
    for nodes in (1, 2, 3, 4, 5, 7, 8, 12, 31):
        for steps, small in ((300_000_000, 30_000_000), (30_000_000, 0), (6_000_000, 1_000_000)):
            times = [0, 1, small // 2, small, *(steps * i // 97 for i in range(98)), steps + 1, 2 * steps]
            factors = " ".join(f"{time}:{factor(time, steps, small, nodes)!r}" for time in times)
            print(samplers, nodes, steps, small, *multipliers(samplers, nodes), factors)

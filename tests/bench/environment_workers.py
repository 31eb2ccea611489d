#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How fast a worker of dtool_env.py steps a Gymnasium environment, beside Gymnasium's own AsyncVectorEnv and SyncVectorEnv, by turns.

usage: PYTHON tests/bench/environment_workers.py [ID [ENVIRONMENTS,.. [SECONDS [ROUNDS [KEY=JSON ..]]]]], with a Python that has Gymnasium

This script is the learner: it writes actions of chance, rings, and waits. The table has the medians of ROUNDS turns of SECONDS each, in
steps/s by the clock, and in steps for each second of a core: of those that all used, and of those that the processes with the environments
used.
"""
import json
import mmap
import os
import pathlib
import socket
import statistics
import struct
import subprocess
import sys
import time

import gymnasium
import numpy as np

PROGRAM = os.environ.get("DTOOL_ENV", pathlib.Path(__file__).parents[2] / "trainer/environments/dtool_env.py")


class Worker:
    """A worker with `count` environments, and its memory as docs/simulators.md has it."""

    def __init__(self, identifier, count, keys):
        self.bell, its = socket.socketpair()
        memory = os.memfd_create("environments")
        self.process = subprocess.Popen([sys.executable, PROGRAM], pass_fds=(its.fileno(), memory), env={
            **os.environ, "DTOOL_ENVIRONMENT_DOORBELL": str(its.fileno()), "DTOOL_ENVIRONMENT_MEMORY": str(memory)})
        its.close()
        self.heard = self.bell.makefile("rb")
        self.say({"protocol": 1, "environments": count, "first": 0, "set": "training", "scores": [], "gymnasium": identifier, **keys})
        spec = json.loads(self.heard.readline())
        if "error" in spec:
            sys.exit(spec["error"])
        size, layout = 64, {}
        def take(each):
            nonlocal size
            begin, size = size, size + -(-each * count // 64) * 64
            return begin
        values = len(spec["actions"].get("choices") or spec["actions"]["low"])
        for name, each in (("seeds", 4), ("actions", 4 * values), ("rewards", 4), ("endings", 1), ("scores", 4)):
            layout[name] = take(each)
        bytes_of = [int(np.prod(part["shape"])) * (4 if part["kind"] == "numbers" else 1) for part in spec["observations"]]
        layout["observations"], layout["last_observations"] = [take(each) for each in bytes_of], [take(each) for each in bytes_of]
        os.ftruncate(memory, size)
        self.memory = mmap.mmap(memory, size)
        os.close(memory)
        self.actions = np.frombuffer(self.memory, np.float32, count * values, layout["actions"]).reshape(count, values)
        self.seeds = np.frombuffer(self.memory, np.uint32, count, layout["seeds"])
        self.endings = np.frombuffer(self.memory, np.uint8, count, layout["endings"])
        self.seeds[:] = range(count)
        choices = spec["actions"].get("choices")
        chance = np.random.default_rng(0)
        self.some = [chance.integers(choices, size=(count, values)) if choices else chance.standard_normal((count, values)) for _ in range(997)]
        self.ring, self.done = struct.pack("III", 2, 0, count), 0
        self.say({"size": size, **layout})
        self.heard.readline()

    def say(self, line):
        self.bell.sendall(json.dumps(line).encode() + b"\n")

    def step(self):
        self.actions[:] = self.some[self.done % len(self.some)]
        self.done += 1
        self.bell.sendall(self.ring)
        if self.heard.readline() != b"\n":
            sys.exit("the worker failed")
        self.seeds += self.endings  # as the learner gives every episode another

    def close(self):
        self.heard.close()
        self.bell.close()
        self.process.wait()


class Peer:
    """A vector environment of Gymnasium's, as make_vec makes it."""

    def __init__(self, mode, identifier, count, keys):
        self.all = gymnasium.make_vec(identifier, count, mode, **keys.get("kwargs", {}))
        self.all.reset(seed=list(range(count)))
        self.all.action_space.seed(0)
        self.some, self.done = [self.all.action_space.sample() for _ in range(997)], 0

    def step(self):
        self.all.step(self.some[self.done % len(self.some)])
        self.done += 1

    def close(self):
        self.all.close()


def core_seconds():
    """Those of this process, and of its children that live."""
    used = 0
    for child in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        used += sum(map(int, pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return np.array([time.process_time(), used])


def main(identifier="CartPole-v1", counts="8,32", seconds="3", rounds="5", *words):
    keys = {key: value if key == "import" else json.loads(value) for key, _, value in (word.partition("=") for word in words)}
    if keys.get("import"):
        __import__(keys["import"])
    makers = {"dtool_env.py": Worker, "SyncVectorEnv": lambda *rest: Peer("sync", *rest), "AsyncVectorEnv": lambda *rest: Peer("async", *rest)}
    print(f"{identifier}, gymnasium {gymnasium.__version__}\n| environments | | steps/s | beside | for a second of a core | of the environments' |\n|---|---|---|---|---|---|")
    for count in map(int, counts.split(",")):
        rates = {name: [] for name in makers}
        for _ in range(int(rounds)):
            for name, make in makers.items():
                one = make(identifier, count, keys)
                used, began = core_seconds(), time.monotonic()
                while time.monotonic() - began < float(seconds):
                    one.step()
                took, (mine, theirs) = time.monotonic() - began, core_seconds() - used
                rates[name].append([one.done * count / each for each in (took, mine + theirs, theirs or mine)])
                one.close()
        ours = statistics.median(rate for rate, *_ in rates["dtool_env.py"])
        for name, all_ in rates.items():
            rate, *of_core = (statistics.median(each) for each in zip(*all_))
            print(f"| {count} | {name} | {rate:,.0f} | {ours / rate:.2f} | " + "".join(f"{each:,.0f} | " for each in of_core), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

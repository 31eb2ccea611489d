#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Serves Gymnasium environments to dtool-trainer, which starts it for workload = "ppo" (docs/simulators.md has the protocol).

It needs gymnasium and numpy only. Alone it says what an environment is and how fast it steps; KEY=JSON is a key of [environment]:
    python3 dtool_env.py CartPole-v1 kwargs='{"sutton_barto_reward": true}'
"""
import contextlib
import hashlib
import importlib
import json
import mmap
import os
import pathlib
import socket
import sys
import time
import traceback

try:
    import gymnasium
    import numpy as np
    from gymnasium import spaces
except ImportError as missing:
    gymnasium, lacking = None, str(missing)

MOST_CODES = 256


class Problem(Exception):
    """What the user can mend: a message, and a hint."""


def imported(name):
    sys.path[:0] = {os.getcwd()} - set(sys.path)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Problem(f"module {name} cannot be imported: {error}", f"{sys.executable} looked in {os.getcwd()} and its packages") from error


def make(task):
    try:
        # Gymnasium's checker only warns; what is written into the memory is checked anyway.
        environment = gymnasium.make(task["gymnasium"], disable_env_checker=True, **task.get("kwargs", {}))
    except gymnasium.error.Error as error:
        raise Problem(str(error), "environment.gymnasium is an id of Gymnasium's, and environment.import a module that registers it") from error
    for wrapper in task.get("wrappers", []):
        wrapper = {"name": wrapper} if isinstance(wrapper, str) else wrapper
        module, _, name = wrapper["name"].rpartition(".")
        if not module or not hasattr(imported(module), name):
            raise Problem(f"there is no wrapper {wrapper['name']}", 'a wrapper is "package.module.Class"')
        environment = getattr(imported(module), name)(environment, **wrapper.get("kwargs", {}))
    return environment


class Part:
    """A part of an observation: where it is in what an environment gives, and how it is written into the learner's memory."""

    def __init__(self, name, path, space, kind):
        self.name, self.path, self.shape, self.start, self.codes = name, path, tuple(space.shape or ()), 0, None
        if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
            self.start, self.codes = getattr(space, "start", 0), int(np.max(getattr(space, "nvec", getattr(space, "n", 0))))
        elif isinstance(space, spaces.MultiBinary):
            self.codes = 2
        elif isinstance(space, spaces.Box):
            self.codes = int(space.high.max()) + 1 if space.dtype.kind in "ui" else None
            kind = kind or ("pixels" if space.dtype == np.uint8 and len(self.shape) == 3 else "numbers")
        else:
            raise Problem(f"observation {name} is a {type(space).__name__}, which is not served",
                          f'a wrapper may turn it into a Box, or observations = {{"{name}" = "drop"}} leaves it out')
        if isinstance(kind, int):
            kind, self.codes = "codes", kind
        self.kind = kind or "codes"
        if self.kind == "pixels" and (space.dtype != np.uint8 or not 2 <= len(self.shape) <= 3):
            raise Problem(f"observation {name}, {space.dtype} {list(self.shape)}, is no picture of bytes", f'observations = {{"{name}" = "numbers"}}')
        if self.kind == "codes" and not 0 < (self.codes or 0) <= MOST_CODES:
            raise Problem(f"observation {name} has {self.codes or 'no'} codes, not 1 to {MOST_CODES}",
                          f'observations = {{"{name}" = "numbers"}}, or the wrapper gymnasium.wrappers.FlattenObservation')
        # Of a picture's first and last side, the smaller one is that of the channels; the last one if they are equal.
        self.turned = self.kind == "pixels" and len(self.shape) == 3 and self.shape[2] <= self.shape[0]
        stored = (self.shape[2], *self.shape[:2]) if self.turned else self.shape or (1,)
        self.stored = (1, *stored)[-3:] if self.kind == "pixels" else stored
        self.dtype = np.dtype(np.float32 if self.kind == "numbers" else np.uint8)
        self.told = {"name": name, "kind": self.kind, "shape": self.stored, "codes": self.codes}

    def writer(self, array):
        """A function that writes this part of an observation into entry `i` of `array`."""
        path, shape, start, turned, is_moved = self.path, self.shape, self.start, self.turned, bool(np.any(self.start))

        def write(i, value):
            for key in path:
                value = value[key]
            if getattr(value, "shape", None) != shape:
                value = np.asarray(value)
                if value.shape != shape:
                    raise ValueError(f"observation {self.name} has shape {value.shape} instead of {shape}")
            array[i] = value.transpose(2, 0, 1) if turned else value - start if is_moved else value
        return write


def parts_of(space, kinds, name="", path=()):
    own = name or "observation"
    if kinds.get(own) == "drop":
        return []
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        inner = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return [part for key, each in inner for part in parts_of(each, kinds, f"{name}.{key}" if name else str(key), (*path, key))]
    if isinstance(space, spaces.Text) or getattr(space.dtype, "kind", "") == "U":
        return []
    return [Part(own, path, space, kinds.get(own))]


def actions_of(space):
    """What the learner is told of the actions, and a function from rows of its numbers to a list of actions."""
    if isinstance(space, spaces.Discrete):
        return {"choices": [int(space.n)]}, lambda rows: (rows[:, 0].astype(np.int64) + space.start).tolist()
    if isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)):
        choices, start = getattr(space, "nvec", np.full(space.shape, 2)), getattr(space, "start", 0)
        return {"choices": choices.flatten().tolist()}, lambda rows: rows.astype(np.int64).reshape((-1, *space.shape)) + start
    if isinstance(space, spaces.Box):
        limits = {name: [float(each) if np.isfinite(each) else None for each in side.flatten()]
                  for name, side in (("low", space.low), ("high", space.high))}
        return limits, lambda rows: np.clip(rows.reshape((-1, *space.shape)), space.low, space.high).astype(space.dtype)
    raise Problem(f"its actions are a {type(space).__name__}, which is not served", "a wrapper may turn them into a Box")


def hash_of(module):
    """Of the module's source; of a package's, of all its Python files."""
    source = pathlib.Path(module.__file__)
    files = sorted(source.parent.rglob("*.py")) if hasattr(module, "__path__") else [source]
    return hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()


class Served:
    """All environments of a worker."""

    def __init__(self, task):
        if gymnasium is None:
            raise Problem(f"{sys.executable} cannot import gymnasium and numpy: {lacking}", f"{sys.executable} -m pip install gymnasium numpy")
        module = imported(task["import"]) if task.get("import") else None
        self.all = [make(task) for _ in range(task["environments"])]
        kinds, space = task.get("observations", {}), self.all[0].observation_space
        self.parts = parts_of(space, kinds)
        unknown = {name for name, kind in kinds.items() if kind != "drop"} - {part.name for part in self.parts}
        if unknown or not self.parts:
            raise Problem(f"there is no observation {' or '.join(sorted(unknown))} in {space}"[:1000], "environment.observations says which are used")
        self.actions_told, self.decode = actions_of(self.all[0].action_space)
        self.score_names, self.busy_with = task.get("scores", []), [0]
        package = type(self.all[0].unwrapped).__module__.partition(".")[0]
        self.told = {"protocol": 1, "observations": [part.told for part in self.parts], "actions": self.actions_told,
                     "package": f"{package} {getattr(sys.modules[package], '__version__', '')}".strip(),
                     "hash": hash_of(module) if getattr(module, "__file__", None) else ""}

    def use(self, memory, layout):
        """The learner's memory from now on."""
        def array(offset, dtype, *shape):
            return np.frombuffer(memory, dtype, len(self.all) * int(np.prod(shape)), offset).reshape((-1, *shape))
        values = len(self.actions_told.get("choices") or self.actions_told["low"])
        self.seeds, self.actions = array(layout["seeds"], np.uint32), array(layout["actions"], np.float32, values)
        self.rewards, self.endings = array(layout["rewards"], np.float32), array(layout["endings"], np.uint8)
        self.scores = [array(layout["scores"], np.float32, len(self.score_names))] if self.score_names else []
        self.writers, self.last_writers = (
            [part.writer(array(offset, part.dtype, *part.stored)) for part, offset in zip(self.parts, layout[name])]
            for name in ("observations", "last_observations"))
        self.busy_with = memoryview(memory)[24:28].cast("I")

    def reset(self, begin, end):
        for i in range(begin, end):
            self.busy_with[0] = i
            observation, _ = self.all[i].reset(seed=int(self.seeds[i]))
            for write in self.writers:
                write(i, observation)

    def step(self, begin, end):
        busy_with, rewards, writers = self.busy_with, [], self.writers
        self.endings[begin:end] = 0
        for i, action in enumerate(self.decode(self.actions[begin:end]), begin):
            busy_with[0] = i
            observation, reward, terminated, truncated, info = self.all[i].step(action)
            rewards.append(float(reward))
            if terminated or truncated:
                self.end_episode(i, observation, terminated, info)
                observation, _ = self.all[i].reset(seed=int(self.seeds[i]))
            for write in writers:
                write(i, observation)
        self.rewards[begin:end] = rewards

    def end_episode(self, i, observation, terminated, info):
        self.endings[i] = 1 if terminated else 2
        for write in () if terminated else self.last_writers:
            write(i, observation)
        info = {**info, **{f"episode.{key}": each for key, each in info.get("episode", {}).items()}}  # of RecordEpisodeStatistics
        for j, name in enumerate(self.score_names):
            if name not in info:
                raise Problem(f"at an episode's end info has no {name}, only {', '.join(map(str, info)) or 'nothing'}", "environment.scores names keys of info")
            self.scores[0][i, j] = info[name]


def serve():
    bell = socket.socket(fileno=int(os.environ["DTOOL_ENVIRONMENT_DOORBELL"]))
    heard, served = bell.makefile("rb"), None
    try:
        served = Served(json.loads(heard.readline() or sys.exit()))
        bell.sendall(json.dumps(served.told).encode() + b"\n")
        layout = json.loads(heard.readline() or sys.exit())
        served.use(mmap.mmap(int(os.environ["DTOOL_ENVIRONMENT_MEMORY"]), layout["size"]), layout)
        served.reset(0, len(served.all))
        bell.sendall(b"\n")
        while ring := heard.read(12):
            work, begin, end = np.frombuffer(ring, np.uint32).tolist()
            (served.step if work == 2 else served.reset)(begin, end)
            bell.sendall(b"\n")
    except ConnectionError:  # the learner has gone
        return
    except Exception as error:
        told = dict(zip(("error", "hint"), error.args))
        if not isinstance(error, Problem):
            traceback.print_exc()
            last = traceback.extract_tb(error.__traceback__)[-1]
            told = {"error": f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})"}
        if served is not None:
            told["environment"] = int(served.busy_with[0])
        with contextlib.suppress(ConnectionError):  # the learner has heard of another's mistake
            bell.sendall(json.dumps(told).encode() + b"\n")
        sys.exit(1)
    for each in served.all:
        each.close()


def try_alone(identifier=None, *words):
    task = {"gymnasium": identifier, "environments": 8}
    task |= {key: value if key == "import" else json.loads(value) for key, _, value in (word.partition("=") for word in words)}
    try:
        served = Served(task) if identifier else sys.exit(__doc__)
        print(json.dumps(served.told, indent=2))
    except Problem as problem:
        sys.exit("\nhint: ".join(problem.args))
    steps, began = 0, time.monotonic()
    while time.monotonic() - began < 2:
        for each in served.all:
            each.reset(seed=steps)
            for steps in range(steps + 1, steps + 100):
                if any(each.step(each.action_space.sample())[2:4]):
                    break
    print(f"{steps / (time.monotonic() - began):.0f} steps/s by actions of chance, in {len(served.all)} environments one after another")


if __name__ == "__main__":
    serve() if "DTOOL_ENVIRONMENT_DOORBELL" in os.environ else try_alone(*sys.argv[1:])

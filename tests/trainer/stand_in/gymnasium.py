# SPDX-License-Identifier: MIT
"""What dtool_env.py needs of Gymnasium, with an environment that has every kind of space: for tests on machines without it."""
from types import SimpleNamespace

import numpy as np

__version__ = "9.9"


class Space:
    def __init__(self, shape=None, dtype=None, **rest):
        self.shape, self.dtype = shape, None if dtype is None else np.dtype(dtype)
        self.__dict__.update(rest)

    def sample(self):
        return np.zeros(self.shape, self.dtype)


def kind(name, make):
    return type(name, (Space,), {"__init__": make})


spaces = SimpleNamespace(
    Box=kind("Box", lambda self, low, high, shape, dtype=np.float32: Space.__init__(
        self, shape, dtype, low=np.full(shape, low, dtype), high=np.full(shape, high, dtype))),
    Discrete=kind("Discrete", lambda self, n, start=0: Space.__init__(self, (), np.int64, n=n, start=start)),
    MultiDiscrete=kind("MultiDiscrete", lambda self, nvec: Space.__init__(
        self, (len(nvec),), np.int64, nvec=np.array(nvec), start=np.zeros(len(nvec), np.int64))),
    MultiBinary=kind("MultiBinary", lambda self, n: Space.__init__(self, (n,), np.int8, n=n)),
    Dict=kind("Dict", lambda self, **inner: Space.__init__(self, spaces=inner)),
    Tuple=kind("Tuple", lambda self, *inner: Space.__init__(self, spaces=inner)),
    Text=kind("Text", lambda self: Space.__init__(self, (), "U")),
    Graph=kind("Graph", lambda self: Space.__init__(self)))
error = SimpleNamespace(Error=type("Error", (Exception,), {}))


class Everything:
    """Counts its steps, and shows them: with `limit`, an episode is cut off after so many steps, else it ends after 4."""
    observation_space = spaces.Dict(
        picture=spaces.Box(0, 255, (4, 5, 3), np.uint8), stack=spaces.Box(0, 255, (2, 5, 6), np.uint8),
        number=spaces.Box(-1e9, 1e9, (2,)), scalar=spaces.Box(-1, 1, ()), word=spaces.Text(),
        inner=spaces.Tuple(spaces.Discrete(3, start=5), spaces.MultiBinary(2)))
    action_space = spaces.MultiDiscrete([2, 3])

    def __init__(self, limit=None, fault=None):
        self.unwrapped, self.limit, self.fault, self.steps = self, limit, fault, 0

    def look(self):
        picture = np.zeros((4, 5, 3), np.uint8)
        picture[1, 2, 0], picture[3, 4, 2] = self.steps, 9
        number = np.array([self.steps, self.seed], np.float32)
        return {"picture": picture, "stack": np.zeros((2, 5, 6), np.uint8), "scalar": 0.5, "word": "x",
                "number": number[:1] if self.fault == "shape" and self.steps == 2 else number, "inner": (5 + self.steps % 3, [1, 0])}

    def reset(self, seed=None):
        if self.fault == "reset" and self.steps == 4:
            raise ZeroDivisionError("no beginning")
        if seed is not None:
            self.drawn = np.random.default_rng(seed)
        self.steps, self.seed = 0, 1000 + self.drawn.integers(1000) if seed is None else seed % 1000
        return self.look(), {}

    def step(self, action):
        if self.fault == "raise" and self.steps == 2:
            raise ZeroDivisionError("nothing left")
        self.steps += 1
        assert action.shape == (2,) and action.dtype == np.int64
        return self.look(), float(action[0] * 10 + action[1]), self.steps == 4, self.steps == self.limit, {"is_success": self.steps == 4}

    def close(self):
        print("closed")


class Doubled:
    """A wrapper that multiplies rewards."""

    def __init__(self, environment, factor=2):
        self.inner, self.factor = environment, factor

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def step(self, action):
        observation, reward, *rest = self.inner.step(action)
        return observation, reward * self.factor, *rest


class Boxed(Everything):
    observation_space = spaces.Box(0, 255, (3,), np.uint8)
    action_space = spaces.Box(-1, 2, (2,))

    def look(self):
        return np.array([self.steps, 7, 200], np.uint8)

    def step(self, action):
        self.steps += 1
        return self.look(), float(action[0] * 10 + action[1]), False, False, {}


class Broken(Everything):
    def __init__(self):
        raise ZeroDivisionError("broken")


class Vector:
    """Counts its steps; environment i's episodes end after 3 + i. `mode` says how it begins the next one."""
    single_observation_space = spaces.Dict(
        picture=spaces.Box(0, 255, (4, 5, 3), np.uint8), number=spaces.Box(-1e9, 1e9, (2,)), code=spaces.Discrete(9, start=5))
    single_action_space = spaces.Discrete(3, start=1)

    def __init__(self, num_envs, mode="NextStep"):
        self.unwrapped, self.mode, self.steps, self.seed = self, mode, np.zeros(num_envs, int), 0
        self.metadata = {"autoreset_mode": SimpleNamespace(value=mode)}

    def look(self):
        pictures = np.zeros((len(self.steps), 4, 5, 3), np.uint8)
        pictures[:, 1, 2, 0] = self.steps
        numbers = np.stack([self.steps, np.full(len(self.steps), self.seed % 1000)], 1).astype(np.float32)
        return {"picture": pictures, "number": numbers, "code": 5 + self.steps}

    def reset(self, seed=None, options=None):
        self.seed = self.seed if seed is None else seed
        self.steps[options["reset_mask"] if options else slice(None)] = 0
        return self.look(), {}

    def step(self, actions):
        assert actions.shape == self.steps.shape and actions.min() >= 1
        done = self.steps == 3 + np.arange(len(self.steps))
        assert self.mode == "NextStep" or not done.any()
        self.steps = np.where(done, 0, self.steps + 1)
        ended, info = self.steps == 3 + np.arange(len(self.steps)), {"length": self.steps * 10}
        seen, rewards = self.look(), np.where(done, 0., actions)
        if self.mode == "SameStep" and ended.any():
            last = np.array([{key: each[i] for key, each in seen.items()} for i in range(len(ended))])
            seen, info = self.reset(options={"reset_mask": ended})[0], {"final_obs": last, "final_info": info}
        return seen, rewards, ended & False, ended, info

    def close(self):
        print("closed")


class Graphed(Everything):
    observation_space = spaces.Graph()


def make(identifier, disable_env_checker, **kwargs):
    known = {"Everything-v0": Everything, "Boxed-v0": Boxed, "Graphed-v0": Graphed, "Broken-v0": Broken}
    if identifier not in known:
        raise error.Error(f"no {identifier}")
    return known[identifier](**kwargs)


def make_vec(identifier, num_envs, **kwargs):
    return Vector(num_envs, **kwargs)

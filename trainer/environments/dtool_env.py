#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Serves Gymnasium environments to dtool-trainer, which starts it for workload = "ppo" (docs/simulators.md has the protocol).
It needs gymnasium and numpy only. Alone it says what an environment is; KEY=JSON is a key of [environment]:
    python3 dtool_env.py CartPole-v1 kwargs='{"sutton_barto_reward": true}' """
import contextlib, hashlib, importlib, json, mmap, os, pathlib, socket, sys, time, traceback  # noqa: E401

try:
    import gymnasium, numpy as np  # noqa: E401
    from gymnasium import spaces
except ImportError as missing:
    gymnasium, lacking = None, str(missing)

class Problem(Exception):
    """What the user can mend: a message, and a hint."""

def imported(name):
    sys.path[:0] = {os.getcwd()} - set(sys.path)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Problem(f"module {name} cannot be imported: {error}", f"{sys.executable} looked in {os.getcwd()} and its packages") from error

def place_of(error):
    return "{0.filename}, line {0.lineno}".format(traceback.extract_tb((error.__cause__ or error).__traceback__)[-1])

def make(task):
    if task.get("vector") and gymnasium.__version__.startswith("0."): raise Problem("environment.vector needs Gymnasium 1.0", "pip install -U gymnasium")  # noqa: E701
    try:  # Gymnasium's checker only warns; what is written into the memory is checked anyway.
        how = (gymnasium.make_vec, {"num_envs": task["environments"]}) if task.get("vector") else (gymnasium.make, {"disable_env_checker": True})
        environment = how[0](task["gymnasium"], **how[1], **task.get("kwargs", {}))
    except gymnasium.error.Error as error:
        raise Problem(str(error), "environment.gymnasium is an id of Gymnasium's, and environment.import a module that registers it") from error
    except TypeError as error:
        raise Problem(f"{error} ({place_of(error)})", "environment.kwargs are its arguments") from error
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
        self.name, self.path, self.shape, self.start, self.codes = name, path, tuple(space.shape or ()), 0, 2
        if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
            self.start, self.codes = getattr(space, "start", 0), int(np.max(getattr(space, "nvec", getattr(space, "n", 0))))
        elif isinstance(space, spaces.Box):
            self.codes = int(space.high.max()) + 1 if space.dtype.kind in "ui" else None
            kind = kind or ("pixels" if space.dtype == np.uint8 and len(self.shape) == 3 else "numbers")
        elif not isinstance(space, spaces.MultiBinary):
            raise Problem(f"observation {name} is a {type(space).__name__}, which is not served",
                          f'a wrapper may turn it into a Box, or observations = {{"{name}" = "drop"}} leaves it out')
        self.kind, self.codes = ("codes", kind) if isinstance(kind, int) else (kind or "codes", self.codes)
        if self.kind == "pixels" and (space.dtype != np.uint8 or not 2 <= len(self.shape) <= 3):
            raise Problem(f"observation {name}, {space.dtype} {list(self.shape)}, is no picture of bytes", f'observations = {{"{name}" = "numbers"}}')
        if self.kind == "codes" and not 0 < (self.codes or 0) <= 256:
            raise Problem(f"observation {name} has {self.codes or 'no'} codes, not 1 to 256",
                          f'observations = {{"{name}" = "numbers"}}, or the wrapper gymnasium.wrappers.FlattenObservation')
        # Of a picture's first and last side, the smaller one is that of the channels; the last one if they are equal.
        self.turned = self.kind == "pixels" and len(self.shape) == 3 and self.shape[2] <= self.shape[0]
        stored = (self.shape[2], *self.shape[:2]) if self.turned else self.shape or (1,)
        self.stored = (1, *stored)[-3:] if self.kind == "pixels" else stored
        self.dtype = np.dtype(np.float32 if self.kind == "numbers" else np.uint8)
        self.told = {"name": name, "kind": self.kind, "shape": self.stored, "codes": self.codes}

    def writer(self, array, lead=()):
        """A function that writes this part of an observation into entry `i` of `array`; with `lead`, that of so many into all of it."""
        path, shape, start, is_moved = self.path, (*lead, *self.shape), self.start, bool(np.any(self.start))
        axes = self.turned and ((0, 3, 1, 2) if lead else (2, 0, 1))
        def write(i, value):
            for key in path:
                value = value[key]
            if getattr(value, "shape", None) != shape and (value := np.asarray(value)).shape != shape:
                raise ValueError(f"observation {self.name} has shape {value.shape} instead of {shape}")
            value = value.transpose(axes) if axes else value - start if is_moved else value
            array[i] = value.reshape(array.shape) if lead else value
        return write

def parts_of(space, kinds, names, name="", path=()):
    own = name or "observation"
    names.add(own)
    if kinds.get(own) == "drop" or isinstance(space, spaces.Text) or getattr(space.dtype, "kind", "") == "U":
        return []
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        inner = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return [part for key, each in inner for part in parts_of(each, kinds, names, f"{name}.{key}" if name else str(key), (*path, key))]
    return [Part(own, path, space, kinds.get(own))]

def actions_of(space):
    """What the learner is told of the actions, and a function from rows of its numbers to actions."""
    if isinstance(space, spaces.Discrete):
        return {"choices": [int(space.n)]}, lambda rows: rows[:, 0].astype(np.int64) + space.start
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

def item(values, i):
    """That of environment `i` in what a vector environment gives."""
    if isinstance(values, dict):
        return {key: item(each, i) for key, each in values.items()}
    return tuple(item(each, i) for each in values) if isinstance(values, tuple) else values[i]

def scores_in(info, names):
    info = {**info, **{f"episode.{key}": each for key, each in info.get("episode", {}).items()}}  # of RecordEpisodeStatistics
    for name in set(names) - set(info):
        raise Problem(f"at an episode's end info has no {name}, only {', '.join(map(str, info)) or 'nothing'}", "environment.scores names keys of info")
    return [info[name] for name in names]

def try_scores(task):
    """Has an episode end by actions of chance, if one does soon, in an environment of its own: a wrong name is told before all begins."""
    environment, began, ended = make(task), time.monotonic(), False
    environment.reset(seed=0)
    while not ended and time.monotonic() - began < 2:
        *_, terminated, truncated, info = environment.step(environment.action_space.sample())
        if ended := terminated or truncated:
            scores_in(info, task["scores"])
    environment.close()

class Served:
    """All environments of a worker."""
    def __init__(self, task):
        if gymnasium is None:
            raise Problem(f"{sys.executable} cannot import gymnasium and numpy: {lacking}", f"{sys.executable} -m pip install gymnasium numpy")
        module = imported(task["import"]) if task.get("import") else None
        is_vector, self.count = task.get("vector"), task["environments"]
        self.all = [make(task) for _ in range(1 if is_vector else self.count)]
        kinds, names, single = task.get("observations", {}), set(), "single_" if is_vector else ""
        space, self.lead = getattr(self.all[0], single + "observation_space"), (self.count,) if is_vector else ()
        self.parts = parts_of(space, kinds, names)
        unknown = {name for name, kind in kinds.items() if name not in (names if kind == "drop" else [part.name for part in self.parts])}
        if unknown or not self.parts:
            raise Problem(f"there is no observation {' or '.join(sorted(unknown))} in {space}"[:1000], "environment.observations says which are used")
        self.actions_told, self.decode = actions_of(getattr(self.all[0], single + "action_space"))
        self.score_names, self.busy_with, self.steps = task.get("scores", []), [0], [each.step for each in self.all]
        # Gymnasium's environments are seeded once and go on with their own generator; a validation's are the same again and again.
        self.seeds_all = task.get("set") == "validation" or task.get("seed_every_episode")
        if self.score_names and task.get("set") == "training" and task.get("first") == 0 and self.count > 1 and not is_vector:
            try_scores(task)
        package = type(self.all[0].unwrapped).__module__.partition(".")[0]
        self.told = {"protocol": 1, "observations": [part.told for part in self.parts], "actions": self.actions_told,
                     "package": f"{package} {getattr(sys.modules[package], '__version__', '')}".strip(),
                     "hash": hash_of(module) if getattr(module, "__file__", None) else ""}

    def use(self, memory, layout):
        """The learner's memory from now on."""
        def array(offset, dtype, *shape):
            return np.frombuffer(memory, dtype, self.count * int(np.prod(shape)), offset).reshape((-1, *shape))
        self.actions = array(layout["actions"], np.float32, len(self.actions_told.get("choices") or self.actions_told["low"]))
        self.seeds, self.rewards, self.endings = (
            array(layout[name], kind) for name, kind in (("seeds", np.uint32), ("rewards", np.float32), ("endings", np.uint8)))
        self.scores = [array(layout["scores"], np.float32, len(self.score_names))] if self.score_names else []
        self.writers, self.last_writers = (
            [part.writer(array(offset, part.dtype, *part.stored), lead) for part, offset in zip(self.parts, layout[name])]
            for name, lead in (("observations", self.lead), ("last_observations", ())))
        self.busy_with = memoryview(memory)[24:32].cast("I")

    def reset(self, begin, end):
        for i in [0] if self.lead else range(begin, end):
            self.busy_with[0] = self.count if self.lead else i  # Of a vector environment none is busy alone.
            self.show(slice(None) if self.lead else i, self.all[i].reset(seed=int(self.seeds[i]))[0])

    def show(self, i, observation):
        for write in self.writers:
            write(i, observation)

    def step(self, begin, end):
        busy_with, rewards, show = self.busy_with, [], self.writers[0] if len(self.writers) == 1 else self.show
        self.endings[begin:end] = 0
        for i, (step, action) in enumerate(zip(self.steps[begin:end], self.decode(self.actions[begin:end])), begin):
            busy_with[0] = i
            observation, reward, terminated, truncated, info = step(action)
            rewards.append(float(reward))
            if terminated or truncated:
                self.end_episode(i, observation, terminated, info)
                busy_with[1] = 1  # An episode that begins.
                observation, _ = self.all[i].reset(seed=int(self.seeds[i]) if self.seeds_all else None)
                busy_with[1] = 0
            show(i, observation)
        self.rewards[begin:end] = rewards

    def end_episode(self, i, observation, terminated, info):
        self.endings[i] = 1 if terminated else 2
        for write in () if terminated else self.last_writers:
            write(i, observation)
        if self.score_names:
            self.scores[0][i] = scores_in(info, self.score_names)

class ServedVector(Served):
    """One vector environment. Where it resets itself in the next step, an episode begins with the last observation, and that step does nothing."""
    def step(self, begin, end):
        observation, self.rewards[:], terminated, truncated, info = self.steps[0](self.decode(self.actions))
        self.endings[:] = ended = np.logical_or(terminated, truncated)
        how = getattr(self.all[0].metadata.get("autoreset_mode"), "value", "NextStep")
        last, info = (info.get("final_obs"), info.get("final_info")) if how == "SameStep" else (observation, info)
        for i in np.flatnonzero(ended):
            self.end_episode(i, item(last, i), terminated[i], item(info, i) if self.score_names else {})
        if how == "Disabled" and ended.any():
            observation, _ = self.all[0].reset(options={"reset_mask": ended})
        self.show(slice(None), observation)

def serve():
    bell = socket.socket(fileno=int(os.environ["DTOOL_ENVIRONMENT_DOORBELL"]))
    heard, served = bell.makefile("rb"), None
    try:
        task = json.loads(heard.readline() or sys.exit())
        served = (ServedVector if task.get("vector") else Served)(task)
        bell.sendall(json.dumps(served.told).encode() + b"\n")
        layout = json.loads(heard.readline() or sys.exit())
        served.use(mmap.mmap(int(os.environ["DTOOL_ENVIRONMENT_MEMORY"]), layout["size"]), layout)
        served.reset(0, served.count)
        bell.sendall(b"\n")
        while ring := heard.read(12):
            work, begin, end = np.frombuffer(ring, np.uint32).tolist()
            (served.step if work == 2 else served.reset)(begin, end)
            bell.sendall(b"\n")
    except Exception as error:
        told = dict(zip(("error", "hint"), error.args))
        if not isinstance(error, (Problem, ConnectionError)):
            traceback.print_exc()
            told = {"error": f"{type(error).__name__}: {error} ({place_of(error)})"}
        told["environment"] = int(served.busy_with[0]) if served else -1
        with contextlib.suppress(ConnectionError):  # the learner has gone, such as after another's mistake
            bell.sendall(json.dumps(told).encode() + b"\n")
        sys.exit(1)
    for each in served.all:
        each.close()

def tell_alone(identifier=None, *words):
    keys = {key: value if key == "import" else json.loads(value) for key, _, value in (word.partition("=") for word in words)}
    try:
        print(json.dumps(Served({"gymnasium": identifier, "environments": 1, **keys}).told, indent=2) if identifier else __doc__)
    except Problem as problem:
        sys.exit("\nhint: ".join(problem.args))

if __name__ == "__main__":
    serve() if "DTOOL_ENVIRONMENT_DOORBELL" in os.environ else tell_alone(*sys.argv[1:])

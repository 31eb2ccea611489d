# SPDX-License-Identifier: MIT
"""Starts the runs of tests/bench/ppo, and tells what each did."""
import ast
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib

import ppo_cpu
import training_hosts
from training_runs import HERE, free_port

PYTHON = os.environ.get("DTOOL_PPO_PYTHON", "python3")
ALLENACT_PYTHON = os.environ.get("DTOOL_ALLENACT_PYTHON")
EXPERIMENTS = HERE.parents[1] / "trainer" / "experiments"
PEERS = {"stable-baselines3": (PYTHON, "ppo_sb3.py"), "CleanRL, anew": (PYTHON, "ppo_cleanrl.py"),
         "AllenAct": (ALLENACT_PYTHON, "ppo_allenact.py")}
EPISODES = 100
ALONE_SECONDS = 3


@dataclasses.dataclass
class Run:
    rate: float  # steps/s over all processes after the first tenth
    per_cpu_second: float  # steps for each second of a core, once training has begun
    seconds_to: float | None  # the seconds from the first step to the return that counts as learned
    steps_to: int | None
    last: float  # the mean return of the last episodes


def fail(message):
    sys.exit(f"ppo: {message}")


def task_of(name):
    """A task of ppo_tasks.py, which this Python cannot import without gymnasium."""
    tree = ast.parse((HERE / "ppo_tasks.py").read_text())
    tasks = next(ast.literal_eval(each.value) for each in tree.body
                 if isinstance(each, ast.Assign) and each.targets[0].id == "TASKS")
    return tasks[name] if name in tasks else fail(f"no task {name}, only {', '.join(tasks)}")


def environment_of(threads):
    words = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    return os.environ | words | ({"OMP_WAIT_POLICY": "passive"} if threads > 1 else {})


def program(variable, name):
    path = pathlib.Path(os.environ.get(variable) or HERE.parents[1] / "build" / name).resolve()
    return path if os.access(path, os.X_OK) else fail(f"no {path}: build it, or name it in {variable}")


def own_rate(task, folder):
    command = [PYTHON, HERE / "ppo_tasks.py", task, str(task_of(task)["environments"]), str(ALONE_SECONDS)]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment_of(1),
                          check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else fail(f"{task} cannot be stepped by {PYTHON}")


def words_of(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {words_of(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(words_of, value)) + "]"
    return json.dumps(value)


def experiment(task, steps, more, file):
    """The shipped experiment, but for its length, its workers, and that nothing is kept or validated."""
    settings = tomllib.loads((EXPERIMENTS / f"{task}.toml").read_text())
    changes = {"pipeline": {"steps": steps}, "checkpoint": {"every_steps": 0}, "validation": {"every_steps": 0, "episodes": 1},
               "logging": {"every_steps": 1, "tensorboard": False}, "environment": {"python": PYTHON, **more}}
    for table, values in changes.items():
        settings.setdefault(table, {}).update(values)
    file.write_text("".join(f"{key} = {words_of(value)}\n" for key, value in settings.items()))


def run_of_lines(lines, threshold, per_cpu_second=float("nan")):
    """By the lines of metrics.jsonl. A step's line has the mean return and length of the episodes since the line before."""
    begin = next(line["time"] for line in lines if line["event"] == "start")
    steps = [line for line in lines if line["event"] == "step"]
    first, last = steps[len(steps) // 10], steps[-1]
    ended, reached, recent = [], None, None
    before = 0
    for line in steps:
        if line.get("episode_steps"):
            value = line["train_reward"]
            ended.append(((line["step"] - before) / line["episode_steps"], value))
            before = line["step"]
        recent = mean_of_last(ended)
        if reached is None and recent is not None and recent >= threshold:
            reached = line
    rate = (last["step"] - first["step"]) / (last["time"] - first["time"])
    return Run(rate, per_cpu_second, reached and reached["time"] - begin,
               reached and reached["step"], recent if recent is not None else float("nan"))


def mean_of_last(ended):
    counted = total = 0
    for episodes, value in reversed(ended):
        counted += episodes
        total += episodes * value
        if counted >= EPISODES:
            return total / counted
    return None


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def run_dtool(task, setting, processes, seed, steps, folder):
    threads, workers = setting
    file, output = folder / "bench.toml", folder / "output"
    experiment(task, steps, {"workers": int(workers)}, file)
    shutil.rmtree(output, ignore_errors=True)
    command = [program("DTOOL_TRAINER", "dtool-trainer"), file, "--nproc_per_node", str(processes), "--seed", str(seed), "--output_dir",
               output]
    with open(folder / "log", "w+") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, env=environment_of(threads),
                                   start_new_session=True)
        points = []  # steps, and seconds of a core until then; the validation at the end comes after the last one
        while process.poll() is None:
            steps_so_far = last_step_in(output / "metrics.jsonl")
            if steps_so_far > (points[-1][0] if points else 0):
                points.append((steps_so_far, ppo_cpu.of_session(process.pid)))
            time.sleep(0.05)
        log.seek(0)
        if process.returncode != 0 or len(points) < 2:
            fail(f"dtool-trainer ended with {process.returncode}, or too soon:\n{log.read()[-2000:]}")
    (first, start), (last, end) = points[0], points[-1]
    return run_of_lines(lines_of(output / "metrics.jsonl"), task_of(task)["threshold"], (last - first) / (end - start))


def last_step_in(file):
    """The steps of the last line of a step in a metrics.jsonl that is being written; 0 if there is none."""
    if not file.exists():
        return 0
    with open(file, "rb") as lines:
        lines.seek(max(0, file.stat().st_size - 4000))
        found = re.findall(rb'"event": "step".*?"step": (\d+)', lines.read())
    return int(found[-1]) if found else 0


def told_by_peer(text, name):
    found = re.findall(r"\{.*\}", text)
    if not found:
        fail(f"{name} said no result:\n{text[-2000:]}")
    result = json.loads(found[-1])
    reached = result["reached"] or (None, None)
    last = result["last_return"] if result["last_return"] is not None else float("nan")
    return Run(result["rate"], result["per_cpu_second"], reached[1], reached[0], last)


def peer_words(name, task, setting, seed, steps, scripts=HERE):
    python, file = PEERS[name]
    return [python, pathlib.Path(scripts) / file, task, str(seed), str(setting[0]), setting[1], str(steps)]


def run_peer(name, task, setting, processes, seed, steps, folder):
    port, started = str(free_port()), []
    for rank in range(processes if name != "AllenAct" else 1):  # it starts the others itself
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(processes), "RANK": str(rank)}
        started.append(subprocess.Popen(peer_words(name, task, setting, seed, steps), cwd=folder, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment_of(setting[0]) | place,
                                        start_new_session=True))
    outputs = [each.communicate()[0] for each in started]
    return told_by_peer(outputs[0], name)


def run(name, task, setting, processes, seed, steps, folder):
    if name == "dtool":
        return run_dtool(task, setting, processes, seed, steps, folder)
    return run_peer(name, task, setting, processes, seed, steps, folder)


def run_on_hosts(name, task, hosts, cores, steps, folder):
    """With one thread and one worker a host. The code folder has all that is needed but Python."""
    trainer, lab = program("DTOOL_TRAINER", "dtool-trainer"), f"ppo-{os.getpid()}-{hosts}"
    python = pathlib.Path(PYTHON)
    shared = {trainer.parent, python.parents[1], python.resolve().parents[1]}  # a virtual environment, and the Python that it is of
    subprocess.run([training_hosts.LAB, "up", str(hosts), "--name", lab, "--owner", str(os.getpid()), "--quota", str(cores),
                    *[word for folder in sorted(shared) for word in ("--share", folder)]], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    try:
        around = training_hosts.lab_environment(lab) | {"DTOOL_TRAINER": str(trainer)}
        code = folder / "code"
        shutil.rmtree(code, ignore_errors=True)
        code.mkdir()
        dtool = program("DTOOL", "dtool")
        if name == "dtool":
            experiment(task, steps, {"workers": 1}, code / "bench.toml")
            training_hosts.dtool_run(dtool, around, code, ["bench.toml"])
            home = pathlib.Path(around["DTOOL_LAB_FOLDER"], "host1", "root")
            return run_of_lines(lines_of(next(home.rglob("metrics.jsonl"))), task_of(task)["threshold"])
        for each in HERE.glob("ppo_*.py"):
            shutil.copy(each, code)
        words = peer_words(name, task, (1, "sync"), 1, steps, ".")
        return told_by_peer(training_hosts.dtool_run(dtool, around, code, ["--", *words]), name)
    finally:
        subprocess.run([training_hosts.LAB, "down", "--name", lab], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

# SPDX-License-Identifier: MIT
"""Training on more and more lab hosts, each held to a part of a core, for tests/bench/trainer --hosts."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import training_runs
from training_runs import HERE, PYTHON, fail

LAB = HERE.parent / "lab"
EPOCHS = 2


def lab_environment(name):
    lines = subprocess.run([LAB, "env", "--name", name], capture_output=True, text=True, check=True).stdout
    told = subprocess.run(["bash", "-c", f"set -a; {lines}\nenv -0"], capture_output=True, text=True, check=True).stdout
    return dict(each.split("=", 1) for each in told.split("\0") if each)


def dtool_run(dtool, environment, folder, arguments):
    common = [dtool, "run", "--follow", "--runs_on", environment["DTOOL_LAB_HOSTS"], "--seed", "1", "--export", "OMP_NUM_THREADS=1",
              "--export", "OPENBLAS_NUM_THREADS=1"]
    done = subprocess.run([*common, *arguments], env=environment, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        fail(f"dtool run {shlex.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def one_size(dtool, trainer, folder, data, hosts, cores):
    name = f"training-{os.getpid()}-{hosts}"
    subprocess.run([LAB, "up", str(hosts), "--name", name, "--owner", str(os.getpid()), "--quota", str(cores), "--share", trainer.parent,
                    "--share", data], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        environment = lab_environment(name) | {"DTOOL_TRAINER": str(trainer)}
        shutil.rmtree(folder / "code", ignore_errors=True)
        code = folder / "code"
        code.mkdir()
        training_runs.experiment(code, data, EPOCHS)
        shutil.copy(HERE / "train_ddp.py", code)
        told = dtool_run(dtool, environment, code, ["bench.toml"])
        rates = [float(each) for each in re.findall(r"epoch \d+/\d+ done .*samples/s (\d+)", told)]
        ours = training_runs.steady(rates)
        told = dtool_run(dtool, environment, code, ["--", PYTHON, "train_ddp.py", data, "indexed", str(EPOCHS), "1"])
        python = training_runs.steady(json.loads(re.search(r"\{.*\}", told)[0])["rates"])
        return ours, python
    finally:
        subprocess.run([LAB, "down", "--name", name], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(dtool, trainer, folder, data, sizes, cores):
    print(f"\nlab hosts of {cores} core each, one rank a host; samples/s of the second of {EPOCHS} epochs, efficiency to as many times one host")
    print(f"{'hosts':>5} {'dtool-trainer':>14} {'efficiency':>11} {'Python DDP':>12} {'efficiency':>11} {'dtool/Python':>13}")
    alone = None
    for hosts in sizes:
        ours, python = one_size(dtool, trainer, pathlib.Path(folder), data, hosts, cores)
        alone = alone or (ours / hosts, python / hosts)
        print(f"{hosts:5} {ours:14.0f} {ours / hosts / alone[0]:11.2f} {python:12.0f} {python / hosts / alone[1]:11.2f}"
              f" {ours / python:13.2f}", flush=True)

# SPDX-License-Identifier: MIT
"""Starts training runs for tests/bench/trainer, of dtool-trainer and of its peer in Python, and tells what each did."""
import dataclasses
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # Debian's, which has python3-torch
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclasses.dataclass
class Result:
    rate: float  # samples/s over all ranks, without the first epoch
    first_step: float  # seconds from the start of the first process to the end of the first step
    memory: float  # MiB, the peak of the largest rank's resident set
    accuracy: float


def fail(message):
    sys.exit(f"trainer: {message}")


def steady(rates):
    """The rate of all epochs but the first, which warms up; epochs have equally many samples."""
    later = rates[1:] or rates
    return len(later) / sum(1 / rate for rate in later)


def wait_for(process, what):
    """Its peak memory, and that of its waited-for descendants, in MiB."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        fail(f"{what} ended with exit code {process.returncode}")
    return usage.ru_maxrss / 1024


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def experiment(folder, data, epochs, every_steps=100):
    """mnist.toml as shipped, but for where the data is, how long it trains, and that nothing is kept."""
    file = pathlib.Path(folder) / "bench.toml"
    file.write_text(f"""workload = "classifier"
model.hidden = [50]
data.source = "mnist"
data.path = "{data}"
optimizer.learning_rate = 0.001
optimizer.scale_learning_rate = "linear"
train.epochs = {epochs}
train.batch_size = 64
train.evaluate_every = 0
checkpoint.every_epochs = 0
logging.every_steps = {every_steps}
""")
    return file


def events(folder, kind):
    with open(folder / "metrics.jsonl") as lines:
        return [line for line in map(json.loads, lines) if line["event"] == kind]


def start_dtool(trainer, file, output, ranks, seed):
    shutil.rmtree(output, ignore_errors=True)
    command = [trainer, file, "--nproc_per_node", str(ranks), "--seed", str(seed), "--output_dir", output]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | ONE_THREAD)


def run_dtool(trainer, folder, data, epochs, ranks, seed):
    output = pathlib.Path(folder) / "output"
    # Log points at every step would slow the run down, so the first step has a run of its own.
    file = experiment(folder, data, 1, every_steps=1)
    begin = time.time()
    wait_for(start_dtool(trainer, file, output, ranks, seed), "dtool-trainer")
    first_step = events(output, "step")[0]["time"] - begin
    process = start_dtool(trainer, experiment(folder, data, epochs), output, ranks, seed)
    memory = wait_for(process, "dtool-trainer")
    done = events(output, "epoch")
    return Result(steady([each["samples_per_s"] for each in done]), first_step, memory, done[-1]["test_accuracy"])


def run_python(kind, data, epochs, ranks, seed):
    port = str(free_port())
    begin = time.time()
    processes = []
    for rank in range(ranks):
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks), "RANK": str(rank)}
        command = [PYTHON, HERE / "train_ddp.py", data, kind, str(epochs), str(seed)]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | ONE_THREAD | place))
    told = json.loads(processes[0].stdout.readline() or fail(f"Python ({kind}) said nothing"))
    memory = max(wait_for(process, f"Python ({kind})") for process in processes)
    return Result(steady(told["rates"]), told["first_step"] - begin, memory, told["accuracy"])

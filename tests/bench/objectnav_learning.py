# SPDX-License-Identifier: MIT
"""Seconds to a success in training, for `tests/bench/objectnav --until`: when a run's metrics reach it, the same learning without
hosts, the table and the chart."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

EPISODES = 1000  # success is the mean over so many, the last ones
TASKS = {
    "shipped": {},
    # Four times the floor with all twelve objects, seen from twice as far, in twice the steps.
    "wide": {
        "environment": {"least_side": 24, "most_side": 32, "objects": 12, "success_distance": 2.0, "step_limit": 400},
        "pipeline": {"steps": 30_000_000},
    },
}


def read_lines(file):
    """The whole lines of a metrics.jsonl that is being written."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("}\n")]


def reached(lines, success):
    """The first log point at which the last EPISODES episodes have this success; None if there is none.

    A log point has the mean success and the mean steps of the episodes that ended since the one before.
    """
    points = []
    before = 0
    for line in lines:
        if line["event"] != "step":
            continue
        episodes = (line["step"] - before) / line["episode_steps"] if "episode_steps" in line else 0
        before = line["step"]
        points.append((episodes, line.get("train_success", 0)))
        counted = total = 0
        for each, share in reversed(points):
            counted += each
            total += each * share
            if counted >= EPISODES:
                break
        if counted >= EPISODES and total / counted >= success:
            return line
    return None


def in_toml(tables):
    """An experiment of keys and of tables of keys."""
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in tables.items() if not isinstance(value, dict))
    for name, table in tables.items():
        if isinstance(table, dict):
            text += f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
    return text


def learn_here(trainer, experiment, ranks, seed, is_over):
    """Trains with so many ranks on this machine, of which each counts as a machine, until `is_over` its lines; returns these."""
    environment = dict(experiment["environment"])
    environment["samplers"] = environment.pop("samplers_per_machine", 60)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "e.toml")
        file.write_text(in_toml(experiment | {"environment": environment}))
        output = pathlib.Path(folder, "out")
        words = [trainer, file, "--nproc_per_node", str(ranks), "--seed", str(seed), "--output_dir", output]
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with open(pathlib.Path(folder, "log"), "w+") as log:
            run = subprocess.Popen(words, env=os.environ | threads, stdout=log, stderr=log)
            try:
                while True:
                    ended = run.poll() is not None
                    lines = read_lines(output / "metrics.jsonl")
                    if is_over(lines):
                        return lines
                    if ended:
                        log.seek(0)
                        sys.exit(f"objectnav: the training ended with {run.returncode}:\n{log.read()[-2000:]}")
                    time.sleep(0.5)
            finally:
                if run.poll() is None:
                    run.terminate()
                    run.wait()


def print_table(results, options):
    seeds = range(1, options.repeat + 1)
    print(f"lab hosts of {options.cores} core each, a rank a host; seconds from the first rollout's begin until the last {EPISODES} "
          f"episodes in training have success {options.until}")
    print(f"{'task':<8} {'machines':>8} " + " ".join(f"{f'seed {seed}':>7}" for seed in seeds) +
          f" {'median':>7} {'of one':>7} {'steps (K)':>9} {'steps/s':>8}")
    for task in options.tasks:
        of_task = [each for each in results if each["task"] == task]
        for each in of_task:
            each["median"] = statistics.median(each["seconds"])
        alone = min(of_task, key=lambda each: each["machines"])
        for each in of_task:
            each["of_one"] = each["median"] / alone["median"]
            print(f"{task:<8} {each['machines']:8} " + " ".join(f"{seconds:7.0f}" for seconds in each["seconds"]) +
                  f" {each['median']:7.0f} {each['of_one']:7.2f} {statistics.median(each['steps']) / 1000:9.0f}"
                  f" {statistics.median(each['rates']):8.0f}")


def draw(results, options):
    """A line a task through the medians, and a point for each seed."""
    script = ["set terminal svg size 700,480 background '#ffffff' font 'Sans,12'", f"set output '{options.output}/seconds.svg'",
              "set key right top", "set grid", "set logscale xy 2", "set xlabel 'machines'",
              f"set ylabel 'seconds to {options.until} success in training'",
              f"set xtics ({', '.join(str(each) for each in sorted({each['machines'] for each in results}))})"]
    plots = []
    for number, task in enumerate(options.tasks, 1):
        of_task = sorted((each for each in results if each["task"] == task), key=lambda each: each["machines"])
        script += [f"$median{number} << END", *(f"{each['machines']} {each['median']}" for each in of_task), "END"]
        script += [f"$seeds{number} << END", *(f"{each['machines']} {seconds}" for each in of_task for seconds in each["seconds"]), "END"]
        plots.append(f"$median{number} with lines lw 2 lc {number} title '{task}'")
        plots.append(f"$seeds{number} with points pt 7 ps 0.7 lc {number} notitle")
        plots.append(f"{of_task[0]['median'] * of_task[0]['machines']} / x with lines dt 2 lc {number} notitle")
    subprocess.run(["gnuplot"], input="\n".join([*script, "plot " + ", ".join(plots)]) + "\n", text=True, check=True)

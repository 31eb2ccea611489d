# SPDX-License-Identifier: MIT
"""Seconds to a success in training, for `tests/bench/objectnav --until`: when a run's metrics reach it, the table and the chart."""
import json
import pathlib
import statistics
import subprocess
import tomllib

EXPERIMENTS = pathlib.Path(__file__).resolve().parents[2] / "trainer" / "experiments"
EPISODES = 1000  # success is the mean over so many, the last ones
TASKS = {
    "shipped": {},
    # Four times the floor, with all twelve objects, and twice the steps of an episode.
    "wide": {
        "environment": {"least_side": 24, "most_side": 32, "objects": 12, "step_limit": 400},
        "pipeline": {"steps": 30_000_000},
    },
    # The shipped objectnav_large.
    "large": {key: value for key, value in tomllib.loads((EXPERIMENTS / "objectnav_large.toml").read_text()).items() if key != "workload"},
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


def join(folders):
    """The results of earlier runs, each of some tasks, machines and seeds."""
    joined = {}
    for folder in folders:
        for each in json.loads(pathlib.Path(folder, "learning.json").read_text()):
            key = (each["task"], each["until"], each["machines"])
            entry = joined.setdefault(key, each | {"seeds": [], "seconds": [], "steps": [], "rates": []})
            for name in ("seeds", "seconds", "steps", "rates"):
                entry[name] += each[name]
    return [joined[key] for key in sorted(joined)]


def by_task(results):
    """The results of each task and success, by machines."""
    kinds = sorted({(each["task"], each["until"]) for each in results})
    return {kind: sorted((each for each in results if (each["task"], each["until"]) == kind), key=lambda each: each["machines"])
            for kind in kinds}


def print_table(results, cores):
    seeds = sorted({seed for each in results for seed in each["seeds"]})
    print(f"lab hosts of {cores} core each, a rank a host; seconds from the first rollout's begin until the last {EPISODES} episodes in "
          "training have the success")
    print(f"{'task':<8} {'success':>7} {'machines':>8} " + " ".join(f"{f'seed {seed}':>7}" for seed in seeds) +
          f" {'median':>7} {'of one':>7} {'steps (K)':>9} {'steps/s':>8}")
    for (task, until), of_task in by_task(results).items():
        for each in of_task:
            each["median"] = statistics.median(each["seconds"])
            each["of_one"] = each["median"] / of_task[0]["median"]
            told = {seed: f"{seconds:.0f}" for seed, seconds in zip(each["seeds"], each["seconds"])}
            print(f"{task:<8} {until:7} {each['machines']:8} " + " ".join(f"{told.get(seed, ''):>7}" for seed in seeds) +
                  f" {each['median']:7.0f} {each['of_one']:7.2f} {statistics.median(each['steps']) / 1000:9.0f}"
                  f" {statistics.median(each['rates']):8.0f}")


def draw(results, folder):
    """A line a task through the medians, a point for each seed, and dashed what would be as many times sooner as there are machines."""
    script = ["set terminal svg size 700,480 background '#ffffff' font 'Sans,12'", f"set output '{folder}/seconds.svg'",
              "set key right top", "set grid", "set logscale xy 2", "set xlabel 'machines'",
              "set ylabel 'seconds to the success in training'",
              f"set xtics ({', '.join(str(each) for each in sorted({each['machines'] for each in results}))})"]
    plots = []
    script.append(f"set xrange [{min(each['machines'] for each in results) / 1.1}:{max(each['machines'] for each in results) * 1.1}]")
    for number, ((task, until), of_task) in enumerate(by_task(results).items(), 1):
        script += [f"$median{number} << END", *(f"{each['machines']} {each['median']}" for each in of_task), "END"]
        script += [f"$seeds{number} << END", *(f"{each['machines']} {seconds}" for each in of_task for seconds in each["seconds"]), "END"]
        plots.append(f"$median{number} with lines lw 2 lc {number} title '{task}, {until}'")
        plots.append(f"$seeds{number} with points pt 7 ps 0.7 lc {number} notitle")
        plots.append(f"{of_task[0]['median'] * of_task[0]['machines']} / x with lines dt 2 lc {number} notitle")
    subprocess.run(["gnuplot"], input="\n".join([*script, "plot " + ", ".join(plots)]) + "\n", text=True, check=True)

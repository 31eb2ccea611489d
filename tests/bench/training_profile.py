# SPDX-License-Identifier: MIT
"""Where the time of a training step goes, for tests/bench/trainer --profile: samples of dtool-trainer by perf, sorted by what they are of,
beside the time that the matrix products and the all-reduce take alone."""
import collections
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import time

import training_runs
from training_runs import ONE_THREAD, PYTHON, fail

GRADIENT_BYTES = 4 * (784 * 50 + 50 + 50 * 10 + 10)

# The first that matches library and symbol.
KINDS = [
    ("matrix products", r"libopenblas|libblas|libmkl|sgemm"),
    ("Adam", r"dtool-trainer-worker .*(update|dam)"),
    ("gathering batches", r"gather|to_floats|dtool-trainer-worker .*(oader|fill)|index_select|libc.* __memmove"),
    ("start and end", r"ld-linux|registerKernel|OperatorEntry::(update|compute|deregister)|libgdcm|libhwy"),
    ("all-reduce", r"libgloo|combine|PeerLink|Links::|FloatRing|sched_yield|libuv|epoll|tcp|sock|inet|skb|loopback|net_rx|__ip_|ip_(output|rcv|finish)|copy_(to|from)_(user|iter)|napi"),
    ("memory: malloc, memset, page faults",
     r"libc.* (malloc|free|cfree|_int_|calloc|unlink_chunk|posix_memalign|__memset)|page_fault|clear_page|alloc_pages|pte"),
    ("other of the kernel: scheduling, ...", r"kernel"),
    ("LibTorch: autograd, dispatch, element-wise", r"libtorch|libc10|libsleef|libc\.so|libstdc|libm\.|libpthread|ld-linux"),
]


def samples(data):
    report = subprocess.run(["perf", "report", "-i", data, "--stdio", "--sort", "dso,symbol", "-F", "sample,dso,symbol"],
                            capture_output=True, text=True, check=True).stdout
    for line in report.splitlines():
        match = re.match(r"\s*(\d+)\s+(\S+)\s+\[.\]\s+(.*\S)", line)
        if match:
            yield int(match[1]), f"{match[2]} {match[3]}"


def profile(trainer, folder, data, ranks):
    file = training_runs.experiment(folder, data, 20)
    record, output = pathlib.Path(folder) / "perf.data", pathlib.Path(folder) / "output"
    shutil.rmtree(output, ignore_errors=True)
    command = ["perf", "record", "--quiet", "-e", "cpu-clock", "-F", "999", "-o", record, trainer, file, "--nproc_per_node", str(ranks),
               "--output_dir", output]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        fail(f"perf record failed: {done.stderr}")
    shares = collections.Counter()
    for count, what in samples(record):
        shares[next((kind for kind, pattern in KINDS if re.search(pattern, what)), "rest")] += count
    rate = training_runs.steady([each["samples_per_s"] for each in training_runs.events(output, "epoch")])
    return shares, rate


def starts(floor_program):
    """What it takes to have LibTorch in a process: without arguments the floor's program only ends again."""
    print("\nLibTorch in a process that does nothing, medians of 5")
    for who, command in {"a C++ program": [floor_program], "python3 -c 'import torch'": [PYTHON, "-c", "import torch"]}.items():
        seconds, memory = [], []
        for _ in range(5):
            begin = time.time()
            _, _, usage = os.wait4(subprocess.Popen(command).pid, 0)
            seconds.append(time.time() - begin)
            memory.append(usage.ru_maxrss / 1024)
        print(f"  {who:26} {statistics.median(seconds):6.2f} s {statistics.median(memory):6.0f} MiB")


def all_reduce(trainer):
    """Microseconds for the bytes of the network's gradients on two ranks of this machine, by way; medians."""
    command = [trainer, "comm", "--nproc_per_node", "2", "--operations", "all_reduce", "--sizes", str(GRADIENT_BYTES), "--json"]
    told = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True).stdout
    return {row["algorithm"]: row["median_seconds"] * 1e6 for row in json.loads(told)["rows"]}


def measure(trainer, floor_program, folder, data):
    if not shutil.which("perf"):
        fail("perf is not installed: tests/dependencies bench")
    products = float(subprocess.run([floor_program, "products"], env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True).stdout)
    exchanges = all_reduce(trainer)
    print("\nall-reduce of the gradients on two ranks, us: " + ", ".join(f"{way} {time:.0f}" for way, time in exchanges.items()))
    starts(floor_program)
    for ranks in (1, 2):
        shares, rate = profile(trainer, folder, data, ranks)
        del shares["start and end"]
        total = sum(shares.values())
        print(f"\n{ranks} rank{'s' if ranks > 1 else ''}: {rate:.0f} samples/s while profiled, {64e6 * ranks / rate:.0f} us a step;"
              " shares of the CPU time")
        for kind, count in shares.most_common():
            print(f"  {100 * count / total:5.1f} %  {kind}")
        exchange = min(exchanges.values()) if ranks > 1 else 0
        floor_us = products + exchange
        print(f"  floor: {products:.0f} us of matrix products" + (f" + {exchange:.0f} us of all-reduce" if ranks > 1 else "") +
              f" = {64e6 * ranks / floor_us:.0f} samples/s; the step takes {64e6 * ranks / rate / floor_us:.1f} times that")

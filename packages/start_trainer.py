# SPDX-License-Identifier: MIT
"""dtool-trainer in an environment of Python: checks that its PyTorch is the one that the trainer was built with, and becomes the
trainer. No code of PyTorch runs. make_trainer_wheel packs it; dtool asks for `--libraries`, to send the trainer to hosts."""

import glob
import os
import re
import signal
import sys

BUILT_WITH = "@PYTORCH@"  # such as 2.11.0+cu130; a trainer without CUDA has no part after the `+`
HERE = os.path.dirname(os.path.abspath(__file__))


def find_pytorch():
    """The folder of the package `torch`. The one beside this package comes first, since the loader looks there first."""
    beside = os.path.join(os.path.dirname(HERE), "torch")
    if os.path.exists(os.path.join(beside, "version.py")):
        return beside
    from importlib.util import find_spec

    found = find_spec("torch")
    for folder in found and found.submodule_search_locations or []:
        return os.path.abspath(folder)
    return None


def version_of(pytorch):
    """The version as the package writes it down, or None."""
    try:
        with open(os.path.join(pytorch, "version.py"), encoding="utf-8", errors="replace") as file:
            found = re.search(r"^__version__ = (['\"])([0-9A-Za-z.+_-]{1,64})\1$", file.read(65536), re.MULTILINE)
    except OSError:
        return None
    return found and found[2]


def release_of(version):
    """`2.11` of 2.11.0+cu130"""
    return ".".join(version.partition("+")[0].split(".")[:2])


def is_fit(version):
    build = BUILT_WITH.partition("+")[2]
    return release_of(version) == release_of(BUILT_WITH) and build in ("", version.partition("+")[2])


def refuse(pytorch, version):
    """Names both versions; gives the exit code."""
    release, plus, build = release_of(BUILT_WITH), *BUILT_WITH.partition("+")[1:]
    place = os.path.dirname(pytorch) if pytorch else sys.prefix
    has = version or ("one of an unknown version" if pytorch else "none")
    hint = f"pip install 'torch=={release}.*'"
    if version and release_of(version) == release:
        hint = f"pip install --force-reinstall 'torch=={release}.*', from where it is built +{build}"
    elif version:
        hint += f", or a dtool-trainer that was built for PyTorch {release_of(version)}"
    sys.stderr.write(f"dtool-trainer: this trainer was built for PyTorch {release}{plus}{build}, and {place} has {has}\nhint: {hint}\n")
    return 2


def start(name):
    """Becomes that program, or gives an exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    pytorch = find_pytorch()
    version = version_of(pytorch) if pytorch else None
    if not version or not is_fit(version):
        return refuse(pytorch, version)
    packages = os.path.dirname(pytorch)
    if packages != os.path.dirname(HERE):  # such as the system's, which the environment sees
        folders = [os.path.join(pytorch, "lib"), *sorted(glob.glob(os.path.join(glob.escape(packages), "nvidia/*/lib")))]
        folders += filter(None, [os.environ.get("LD_LIBRARY_PATH")])
        os.environ["LD_LIBRARY_PATH"] = ":".join(folders)
    program = os.path.join(HERE, "bin", name)
    if sys.argv[1:] == ["--libraries"]:
        print(f"\t{name} => {program} (0x0)", flush=True)
        os.environ["LD_TRACE_LOADED_OBJECTS"] = "1"
    # What Python ignores, a program would go on to ignore.
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)
    try:
        os.execv(program, [program] + sys.argv[1:])
    except OSError as fault:
        sys.stderr.write(f"dtool-trainer: cannot start {program}: {fault.strerror}\n")
        return 2


def main():
    return start("dtool-trainer")


def worker():
    return start("dtool-trainer-worker")

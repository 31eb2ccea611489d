# SPDX-License-Identifier: MIT
"""Installs the conda packages beside it into an environment, with the py-rattler beside it.

It is sent to hosts with the packages, and runs there for ssh/host/answers/python_environment.cpp:
ENVIRONMENT SCRATCH. What pip brought lies in `pip`, and is put over conda's. It needs no network, and runs none of the packages' scripts.
"""
import asyncio
import hashlib
import os
import pathlib
import shutil
import sys


def check(folder):
    """The packages' files; raises ValueError on one that is not what was sent."""
    files = []
    for line in (folder / "lock.txt").read_text().splitlines():
        wanted, _, name = line.partition(" ")
        hashed = hashlib.sha256()
        with open(folder / name, "rb") as opened:
            while piece := opened.read(1 << 20):
                hashed.update(piece)
        if hashed.hexdigest() != wanted:
            raise ValueError("%s has changed on its way" % name)
        files.append(folder / name)
    return files


async def install(files, environment, scratch):
    import rattler

    records = [await rattler.RepoDataRecord.from_package_archive(each) for each in files
               if each.parent == pathlib.Path(__file__).parent and each.name.endswith((".conda", ".tar.bz2"))]
    await rattler.install(records, target_prefix=environment, cache_dir=scratch / "cache", show_progress=False,
                          execute_link_scripts=False)


def add_pip(folder, environment):
    """Nothing of conda's is replaced."""
    for file in sorted(each for each in folder.rglob("*") if each.is_symlink() or not each.is_dir()):
        place = environment / file.relative_to(folder)
        if os.path.lexists(place):
            raise ValueError("pip's %s is conda's as well" % place.relative_to(environment))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(str(file), str(place))


code = 0
try:
    environment, scratch = map(pathlib.Path, sys.argv[1:])
    files = check(pathlib.Path(__file__).parent)
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "rattler"))
    asyncio.run(install(files, environment, scratch))
    add_pip(pathlib.Path(__file__).parent / "pip", environment)
except BaseException as fault:
    print("%s: %s" % (type(fault).__name__, " ".join(str(fault).split())), file=sys.stderr)
    code = 1
sys.stderr.flush()
# Threads of py-rattler 0.28 still end while Python does, which crashes it now and then.
os._exit(code)

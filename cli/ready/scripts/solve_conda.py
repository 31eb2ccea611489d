# SPDX-License-Identifier: MIT
"""Reads an environment.yml, chooses conda packages for the hosts with py-rattler, and fetches them.

Runs on the launcher, for cli/ready/conda_packages.cpp:
FILE PROCESSOR GLIBC KERNEL CUDA STORE PACKAGES. Prints `local` if a channel is a folder of this
machine. What stands below `pip:` goes into pip.txt, with pip.json about what conda chose. Says what is wrong in lines that begin with `error: `.
"""
import asyncio
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import stat
import sys
import urllib.parse

import rattler
import yaml
from rattler.package import PathsJson
from rattler.package_streaming import download_to_path

LONGEST_FILE = 1 << 20
SUBDIRS = {"x86_64": "linux-64", "aarch64": "linux-aarch64", "ppc64le": "linux-ppc64le"}
# What lists a package of Python among a conda package's files.
PYTHON_PACKAGE = re.compile(r"(?:.*/)?site-packages/([A-Za-z0-9._]+)-([0-9][^-/]*)(?:-py[0-9.]+)?\.(?:dist|egg)-info(?:/.*)?")
FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]{0,250}\.(conda|tar\.bz2)")
DOWNLOADS_AT_ONCE = 4
LARGEST_REPODATA = 8 << 30
PATIENCE = 900  # seconds for the channels' lists
LEAST_RATE = 50_000  # bytes per second of a package


class Refusal(Exception):
    """The whole sentence is for the user."""


class Loader(yaml.BaseLoader):
    """Texts, lists and mappings alone: no types, and no aliases, which can make much of a short file."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.events.AliasEvent):
            raise Refusal("line %d: aliases (*NAME) are not read" % (self.peek_event().start_mark.line + 1))
        return super().compose_node(parent, index)

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                raise Refusal("line %d: %s is there twice" % (key.start_mark.line + 1, key.value))
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def texts(document, key):
    values = document.get(key)
    if not isinstance(values, list) or not values:
        raise Refusal("%s is no list: what it wants are lines '- NAME'" % key)
    return values


def read(file):
    """The channels' names and the packages that are wanted."""
    with open(file, "rb") as opened:
        content = opened.read(LONGEST_FILE + 1)
    if len(content) > LONGEST_FILE:
        raise Refusal("it is longer than 1 MiB")
    try:
        document = yaml.load(content.decode(), Loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as fault:
        raise Refusal("it is no YAML: %s" % fault) from None
    if not isinstance(document, dict):
        raise Refusal("it is no mapping with channels and dependencies")
    for key in document:
        if key == "variables":
            raise Refusal("variables are not read: set them with --export or --env_file")
        if key not in ("name", "prefix", "channels", "dependencies"):
            raise Refusal("there is no key %s: name, channels and dependencies are read" % key)
    if "channels" not in document:
        raise Refusal("it names no channels, such as conda-forge")
    return texts(document, "channels"), texts(document, "dependencies")


def as_channels(names):
    channels = []
    for name in names:
        if not isinstance(name, str) or not name:
            raise Refusal("a channel is no name, folder or address")
        if name == "nodefaults":
            continue
        if name == "defaults":
            raise Refusal("the channel defaults is conda's own setting: name the channel that it stands for")
        try:
            channel = rattler.Channel(name)
        except Exception as fault:
            raise Refusal("%s is no channel: %s" % (name, fault)) from None
        if urllib.parse.urlsplit(channel.base_url).scheme not in ("https", "http", "file"):
            raise Refusal("the channel %s is neither a name, a folder nor an address of https, http or file" % name)
        channels.append(channel)
    return channels


def below_pip(dependencies):
    """Takes them out of the list: lines of a requirements.txt."""
    found = [each for each in dependencies if isinstance(each, dict) and list(each) == ["pip"]]
    if len(found) > 1:
        raise Refusal("pip: is there twice")
    lines = texts(found[0], "pip") if found else []
    if not all(isinstance(each, str) and each.isprintable() for each in lines):
        raise Refusal("what stands below pip: is no text such as numpy==2.1")
    dependencies[:] = [each for each in dependencies if each not in found]
    return lines


def tell_pip(lines, records, packages):
    python = [str(each.version) for each in records if each.name.source == "python"]
    if not python:
        raise Refusal("packages below pip: need python among the dependencies")
    held = {found[1] + "==" + found[2] for record in records for each in PathsJson.from_package_archive(packages / record.file_name).paths
            if (found := PYTHON_PACKAGE.fullmatch(str(each.relative_path)))}
    (packages / "pip.txt").write_text("".join(each + "\n" for each in lines))
    (packages / "pip.json").write_text(json.dumps({"python": python[0], "held": sorted(held)}))


def as_specs(dependencies):
    specs = []
    for each in dependencies:
        if not isinstance(each, str) or not each:
            raise Refusal("a dependency is no text such as numpy=2.1")
        try:
            specs.append(rattler.MatchSpec(each))
        except Exception as fault:
            raise Refusal("the dependency %s: %s" % (each, fault)) from None
    return specs


def virtual_packages(processor, glibc, kernel, cuda):
    """What all hosts have, in conda's words."""
    versions = {"__unix": ("0", "0"), "__linux": (kernel, "0"), "__glibc": ("2." + glibc, "0"),
                "__archspec": ("1", processor)}
    if cuda:
        versions["__cuda"] = (cuda, "0")
    return [rattler.GenericVirtualPackage(rattler.PackageName(name), rattler.Version(version), rattler.BuildString(build))
            for name, (version, build) in versions.items()]


def has_hash(file, wanted):
    hashed = hashlib.sha256()
    try:
        with open(file, "rb") as opened:
            while piece := opened.read(1 << 20):
                hashed.update(piece)
    except FileNotFoundError:
        return False
    return hashed.hexdigest() == wanted


def is_local(url):
    return urllib.parse.urlsplit(url).scheme == "file"


def limit_files(size):
    """No file that this process writes gets larger, whatever a channel sends."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def copy_local(url, part):
    path = urllib.parse.unquote(urllib.parse.urlsplit(url).path)
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as source:
        if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            raise Refusal("%s is no file" % path)
        with open(part, "wb") as target:
            shutil.copyfileobj(source, target)


def put(kept, place):
    try:
        os.link(kept, place)
    except OSError:  # this file system has no hard links
        shutil.copyfile(kept, place)


async def fetch(record, may_be_local, client, files, packages):
    """Gets a package from its channel, or from what an earlier run got."""
    name = record.file_name
    if not FILE_NAME.fullmatch(name):
        raise Refusal("the channel names a package file %r" % name)
    if not record.sha256:
        raise Refusal("the channel tells no SHA-256 of %s" % name)
    if is_local(record.url) and not may_be_local:
        raise Refusal("the channel says that %s is a file of this machine" % name)
    wanted = record.sha256.hex()
    kept = files / wanted
    if not has_hash(kept, wanted):
        part = packages / ("." + wanted)
        try:
            if is_local(record.url):
                copy_local(record.url, part)
            else:
                await asyncio.wait_for(download_to_path(client, record.url, part), 120 + record.size / LEAST_RATE)
            if not has_hash(part, wanted):
                raise Refusal("%s does not have the SHA-256 that the channel tells" % name)
            os.replace(part, kept)
        except asyncio.TimeoutError:
            raise Refusal("%s cannot be fetched: it comes too slowly" % name) from None
        except (RuntimeError, OSError) as fault:
            raise Refusal("%s cannot be fetched: %s" % (name, fault)) from None
        finally:
            part.unlink(missing_ok=True)
    put(kept, packages / name)


async def main(file, processor, glibc, kernel, cuda, store, packages):
    names, dependencies = read(file)
    channels = as_channels(names)
    for_pip = below_pip(dependencies)
    specs = as_specs(dependencies)
    if processor not in SUBDIRS:
        raise Refusal("conda has no packages for the hosts' processor, %s" % processor)
    store, packages = pathlib.Path(store), pathlib.Path(packages)
    files = store / "files"
    files.mkdir(parents=True, exist_ok=True)
    client = rattler.Client.authenticated_client()
    gateway = rattler.Gateway(cache_dir=store / "repodata", client=client)
    limit_files(LARGEST_REPODATA)
    try:
        records = await asyncio.wait_for(
            rattler.solve(channels, specs, gateway=gateway, platforms=[SUBDIRS[processor], "noarch"],
                          virtual_packages=virtual_packages(processor, glibc, kernel, cuda)), PATIENCE)
    except asyncio.TimeoutError:
        raise Refusal("the channels did not answer within %d minutes" % (PATIENCE // 60)) from None
    except Exception as fault:
        raise Refusal("py-rattler says: %s" % fault) from None
    for record in records:
        if not record.size:
            raise Refusal("the channel tells no size of %r" % record.file_name)
    limit_files(max((record.size for record in records), default=0))
    may_be_local = any(is_local(each.base_url) for each in channels)
    limit = asyncio.Semaphore(DOWNLOADS_AT_ONCE)

    async def fetch_in_turn(record):
        async with limit:
            await fetch(record, may_be_local, client, files, packages)

    await asyncio.gather(*map(fetch_in_turn, records))
    if for_pip:
        limit_files(LARGEST_REPODATA)
        tell_pip(for_pip, records, packages)
    if may_be_local:
        print("local")


code = 0
try:
    asyncio.run(main(*sys.argv[1:]))
except (Refusal, OSError) as fault:
    print("error: " + " ".join(str(fault).split()), file=sys.stderr)
    code = 1
except BaseException as fault:
    print("error: %s: %s" % (type(fault).__name__, " ".join(str(fault).split())), file=sys.stderr)
    code = 1
sys.stdout.flush()
sys.stderr.flush()
# Threads of py-rattler 0.28 still end while Python does, which crashes it now and then.
os._exit(code)

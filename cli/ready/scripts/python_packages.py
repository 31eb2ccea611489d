# SPDX-License-Identifier: MIT
"""Chooses Python packages for hosts, and lays them out as the hosts' virtual environment will have them.

Runs on the launcher behind read_requirements.py, for cli/ready/python_packages.cpp, which gives it one
JSON object. uv chooses and installs: it evaluates markers for the hosts' Python and system. Without uv
pip does, if this machine's Python is the hosts'. Prints the hash of the packages and the key under which
they may be found again. Says what is wrong in lines that begin with `error: ` and `hint: `.
"""
import base64
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

UV = "0.13.9"
UV_HASHES = ("d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19",  # x86_64
             "5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe")  # aarch64
OLDEST_UV = (0, 9)
UV_GLIBCS = (17, 28, *range(31, 41))  # that uv has a platform of
# What a script begins with, so that it runs with the python3 beside it.
RELOCATABLE = b"#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' \"$0\" \"$@\"\n' '''\n"
DIRECT = re.compile(r"[A-Za-z0-9._-]+(\[[^]]*\])?==")


def version_of(uv):
    told = subprocess.run([uv, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return tuple(map(int, re.findall(rb"[0-9]+", told.stdout)[:3]))


def find_uv(home):
    """The user's uv, or our own, which pip brings once; None: neither can be had."""
    theirs = shutil.which("uv")
    if theirs and version_of(theirs) >= OLDEST_UV:
        return theirs
    folder = pathlib.Path(home) / "uv" / UV
    if not (folder / "bin/uv").exists() and pip():
        draft = folder.with_name(".draft.%d" % os.getpid())
        draft.mkdir(parents=True)
        try:
            (draft / "wanted").write_text("uv==%s %s\n" % (UV, " ".join("--hash=sha256:" + each for each in UV_HASHES)))
            run([*pip(), "install", "--quiet", "--no-input", "--disable-pip-version-check", "--retries", "1", "--no-deps",
                 "--no-compile", "--only-binary", ":all:", "--require-hashes", "--target", str(draft / "uv"), "-r",
                 str(draft / "wanted")], "pip cannot bring uv", PIP_CONSTRAINT="", PIP_USER="0")
            os.rename(draft / "uv", folder)
        except (Refusal, OSError):  # or another dtool was quicker
            pass
        shutil.rmtree(draft, ignore_errors=True)
    return str(folder / "bin/uv") if (folder / "bin/uv").exists() else None


class Maker:
    """Makes one environment. `wanted` is what cli/ready/python_packages.cpp says."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.scratch = pathlib.Path(wanted["scratch"])
        self.is_lock = os.path.basename(wanted["file"]) == "uv.lock"
        self.pinned = self.scratch / ("pylock.toml" if self.is_lock else "pinned.txt")
        self.minor = ".".join(wanted["version"].split(".")[:2])
        self.variables = {}
        self.has_hashes = False
        self.uv = find_uv(wanted["home"])

    def read(self):
        requirements = Requirements()
        if pip():
            requirements.add_settings(pip())
        os.chdir(self.wanted["folder"] or ".")
        requirements.add(self.wanted["file"], requirements.lines, self.wanted["folder"])
        if self.wanted["keeps_held"]:
            requirements.constraints += self.wanted["held"]
        requirements.write(self.scratch)
        self.variables = requirements.variables
        self.has_hashes = "UV_REQUIRE_HASHES" in self.variables or any(" --hash" in each for each in requirements.lines)

    def make(self):
        """Prints the hash of the packages, and a key under which they may be found again."""
        if self.is_lock:
            self.export()
        else:
            self.read()
            if self.has_hashes:  # a list that names every file; what uv compiles of it has other hashes
                shutil.copyfile(self.scratch / "requirements.txt", self.pinned)
            elif self.uv and not self.wanted["held"]:
                self.compile()
        # A list that says all gives the same packages whenever they are asked for.
        key = "" if not self.pinned.exists() or self.names_sources() else self.key()
        print(self.known(key) or self.install(), key)

    def key(self):
        whose = "3 %s %s %d %s\n" % (self.wanted["version"], self.wanted["processor"], self.wanted["glibc"], self.wanted["sees_system"])
        return hashlib.sha256((whose + self.constraints() + self.pinned.read_text()).encode()).hexdigest()

    def constraints(self):
        file = self.scratch / "constraints.txt"
        return file.read_text() if file.exists() else ""

    def known(self, key):
        store = pathlib.Path(self.wanted["store"])
        try:
            known = (store / (key + ".resolved")).read_text().strip()
        except OSError:
            return None
        return known if (store / known / "lock.txt").exists() else None

    def target(self):
        glibcs = [each for each in UV_GLIBCS if each <= self.wanted["glibc"]]
        words = ["--python-version", self.wanted["version"]]
        if self.wanted["processor"] in ("x86_64", "aarch64") and glibcs:
            words += ["--python-platform", "%s-manylinux_2_%d" % (self.wanted["processor"], glibcs[-1])]
        elif self.wanted["processor"] != platform.machine():
            raise Refusal("uv chooses no packages for the hosts' processor, %s, on another" % self.wanted["processor"])
        if "UV_INDEX_STRATEGY" not in os.environ:  # pip's: the newest of all indexes
            words += ["--index-strategy", "unsafe-best-match"]
        return words

    def run_uv(self, *words):
        words = [self.uv, *words, "--quiet", "--no-python-downloads"]
        try:
            return run(words, "uv says", **self.variables)
        except Refusal as fault:
            try:  # without the index: what uv knows of it
                return run([*words, "--offline"], "uv says", **self.variables)
            except Refusal:
                written = str(self.scratch / "requirements.txt")
                raise Refusal(str(fault).replace(written, self.wanted["file"])) from None

    def export(self):
        if self.uv is None:
            raise Refusal("this machine has no uv, which reads it, and pip cannot bring it",
                          "install uv, or give a requirements.txt")
        words = [word for name in ("extra", "group") for each in self.wanted[name + "s"] for word in ("--" + name, each)]
        if "dev" not in self.wanted["groups"]:
            words.append("--no-dev")
        run([self.uv, "export", "--quiet", "--locked", "--no-emit-project", "--no-editable", "--format", "pylock.toml", "--project",
             os.path.dirname(os.path.abspath(self.wanted["file"])), "--output-file", str(self.pinned), *words], "uv says")

    def compile(self):
        kept = pathlib.Path(self.wanted["kept"])
        if kept.exists():  # what was chosen before stays, if it still can
            shutil.copyfile(kept, self.pinned)
        self.run_uv("pip", "compile", *self.target(), "--python", sys.executable, "--generate-hashes", "--no-annotate",
                    "--no-header", "--no-strip-extras", "--emit-index-url", "--emit-find-links", "--emit-build-options",
                    "--constraints", str(self.scratch / "constraints.txt"), "--output-file", str(self.pinned),
                    str(self.scratch / "requirements.txt"))
        self.keep([each.split()[0] for each in self.pinned.read_text().splitlines() if DIRECT.match(each)])

    def keep(self, chosen):
        kept = pathlib.Path(self.wanted["kept"])
        draft = kept.with_name(".%s.%d" % (kept.name, os.getpid()))
        draft.write_text("".join(each + "\n" for each in chosen))
        os.replace(draft, kept)

    def names_sources(self):
        """Whether what it names may change while its name stays: a folder, or a file behind an address."""
        text = self.pinned.read_text()
        if self.is_lock:
            return re.search(r"^(directory|archive) = ", text, re.MULTILINE) is not None
        return any(not DIRECT.match(each) and not re.search(r" @ git\+\S*@[0-9a-f]{40}\b", each)
                   for each in text.splitlines() if each and each[0] not in " #-")

    def install(self):
        """Lays the packages out in the folder `packages`; returns a hash of all."""
        place = pathlib.Path(self.wanted["packages"])
        if self.uv:
            self.run_uv("venv", "--relocatable", "--no-project", "--python", sys.executable, "--allow-existing", str(place))
        elif (self.wanted["version"], self.wanted["processor"]) != (platform.python_version(), platform.machine()):
            raise Refusal("without uv pip chooses it, and for this machine's Python alone, %s: the hosts have %s" %
                          (platform.python_version(), self.wanted["version"]), "install uv here, which chooses for any")
        elif pip() is None:
            raise Refusal("this machine has neither uv nor pip, which resolve it", "install uv, or python3-pip")
        else:
            run([sys.executable, "-I", "-m", "venv", "--without-pip", str(place)], "python3 -m venv")
        own = [each for each in place.rglob("*") if each.is_symlink() or not each.is_dir()]
        site = place / "lib" / ("python%d.%d" % sys.version_info[:2]) / "site-packages"
        held = [self.hold(site, each) for each in self.wanted["held"]]
        if self.pinned.exists() and not self.has_hashes:
            words = ["-r", str(self.pinned), "--no-deps"]
        else:
            words = ["-r", str(self.scratch / "requirements.txt"), "-c", str(self.scratch / "constraints.txt")]
            words += ["--require-hashes"] if self.has_hashes else []
        if self.uv:
            words += ["--refresh"] if not self.pinned.exists() or self.names_sources() else []
            words = ["pip", "install", *self.target(), "--python", str(place), "--link-mode", "copy", *words]
            self.run_uv_as_before(words) if self.wanted["held"] else self.run_uv(*words)
        else:
            run([*pip(), "--python", str(place / "bin/python3"), "install", "--quiet", "--no-input", "--no-compile",
                 "--disable-pip-version-check", *words], "pip says", **self.variables)
        for each in own:
            each.unlink()
        for each in held:
            shutil.rmtree(each, ignore_errors=True)
        return self.finish(place, site)

    def run_uv_as_before(self, words):
        """With what was chosen before, if it still can."""
        kept = pathlib.Path(self.wanted["kept"])
        if kept.exists():
            try:
                return self.run_uv(*words, "-c", str(kept))
            except Refusal:
                pass
        return self.run_uv(*words)

    def hold(self, site, package):
        """Lets uv see a package that the hosts have."""
        name, _, version = package.partition("==")
        folder = site / ("%s-%s.dist-info" % (re.sub("[-_.]+", "_", name), version))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version))
        (folder / "INSTALLER").write_text("dtool\n")
        (folder / "RECORD").write_text("".join("%s/%s,,\n" % (folder.name, each) for each in ("METADATA", "INSTALLER", "RECORD")))
        return folder

    def finish(self, place, site):
        beginning = b"#!" + bytes(place) + b"/bin/"
        for each in (place / "bin").glob("*"):
            content = each.read_bytes()
            if content.startswith(beginning):
                each.write_bytes(RELOCATABLE + content.partition(b"\n")[2])
            elif content.startswith(b"#!/bin/sh\n'''exec' " + bytes(place)):
                each.write_bytes(RELOCATABLE + content.partition(b"\n' '''\n")[2])
        lines = []
        for info in sorted(site.glob("*.dist-info")):
            name, _, version = info.name[:-len(".dist-info")].partition("-")
            lines.append("%s==%s\n" % (name, version))
            self.check_tags(info, "%s %s" % (name, version))
            self.check_record(info, site, "%s %s" % (name, version))
        if site.parent.name != "python" + self.minor and site.parent.exists():
            os.rename(site.parent, place / "lib" / ("python" + self.minor))
        (place / "lock.txt").write_text("".join(lines))
        if self.uv and self.wanted["held"]:
            self.keep(each.strip() for each in lines)
        whole = hashlib.sha256(("%s %s %s\n" % (self.minor, self.wanted["processor"], self.wanted["sees_system"])).encode())
        # Where files lie counts, and which may be run.
        for line in sorted("%s %o %s\n" % (each.relative_to(place), each.stat().st_mode & 0o111, hash_of(each).hexdigest())
                           for each in place.rglob("*") if each.is_file() and not is_about_installing(each)):
            whole.update(line.encode(errors="surrogateescape"))
        return whole.hexdigest()

    def check_tags(self, info, package):
        wheel = info / "WHEEL"
        systems = re.findall(r"^Tag: *[^-\s]+-[^-\s]+-(\S+)", wheel.read_text(), re.MULTILINE) if wheel.exists() else []
        own = re.findall("[0-9]+", platform.libc_ver()[1])
        glibcs = [glibc_of(each, int(own[1]) if len(own) > 1 else 99) for each in ".".join(systems).split(".")] if systems else [0]
        if min(glibcs) > self.wanted["glibc"]:
            raise Refusal("%s is made for glibc 2.%d, and the hosts have 2.%d" % (package, min(glibcs), self.wanted["glibc"]),
                          "name a version of it that has a wheel for them")

    def check_record(self, info, site, package):
        """uv's cache shares its files with environments of the user, who may have edited one."""
        record = info / "RECORD"
        for line in record.read_text(errors="surrogateescape").splitlines() if record.exists() else []:
            found = re.fullmatch(r'"?(.*?)"?,sha256=([A-Za-z0-9_=-]+),\d*', line)
            if not found or found[1].startswith(("../../../bin/", "/")):
                continue
            file = site / found[1]
            if file.is_file() and base64.urlsafe_b64encode(hash_of(file).digest()).rstrip(b"=") != found[2].rstrip("=").encode():
                raise Refusal("%s of %s is not what its list of files says" % (found[1], package),
                              "uv cache clean %s lets uv fetch it again" % package.split()[0])


def glibc_of(system, own):
    """The least that this part of a wheel's name needs."""
    found = re.match(r"manylinux_2_(\d+)_", system)
    if found:
        return int(found[1])
    return {"manylinux1": 5, "manylinux2010": 12, "manylinux2014": 17}.get(system.split("_")[0], own if system.startswith("linux") else 0)


def is_about_installing(file):
    """Of these the same packages may have others."""
    return file.parent.suffix == ".dist-info" and file.name in ("RECORD", "INSTALLER", "REQUESTED", "uv_cache.json")


def hash_of(file):
    hashed = hashlib.sha256()
    with open(file, "rb") as opened:
        while True:
            piece = opened.read(1 << 20)
            if not piece:
                return hashed
            hashed.update(piece)


try:
    Maker(json.loads(sys.argv[1])).make()
except Refusal as fault:
    print("error: " + " ".join(str(fault).split()), file=sys.stderr)
    if fault.hint:
        print("hint: " + fault.hint, file=sys.stderr)
    sys.exit(1)
except (OSError, ValueError) as fault:
    print("error: %s: %s" % (type(fault).__name__, " ".join(str(fault).split())), file=sys.stderr)
    sys.exit(1)

# SPDX-License-Identifier: MIT
"""Reads a requirements.txt as pip does, with pip's settings, and writes it as uv reads it.

The first part of the program whose second is python_packages.py.
"""
import ast
import codecs
import importlib.util
import locale
import os
import pathlib
import re
import shlex
import subprocess
import sys
import sysconfig

INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL")


class Refusal(Exception):
    def __init__(self, text, hint=""):
        super().__init__(text)
        self.hint = hint


def run(words, doing, **variables):
    """What the program wrote; raises Refusal with its complaint."""
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_TARGET", "UV_PREFIX", "VIRTUAL_ENV", "PYTHONPATH")}
    # The same source makes the same wheel: the zip format's first day.
    environment.update(variables, SOURCE_DATE_EPOCH="315532800", NO_COLOR="1")
    told = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if told.returncode != 0:
        raise Refusal("%s: %s" % (doing, complaint(told)))
    return told.stdout.decode(errors="replace")


def complaint(told):
    lines = [each for each in told.stderr.decode(errors="replace").splitlines() if each.strip()]
    errors = [index for index, each in enumerate(lines) if each.lower().startswith("error: ") and each != "ERROR: Exception:"]
    if not errors:
        return lines[-1] if lines else "exit code %d" % told.returncode
    if all(each.startswith("ERROR: ") for each in map(lines.__getitem__, errors)):
        return "; ".join(lines[index][7:] for index in errors[:3])
    return " ".join(" ".join(lines[errors[0]:errors[0] + 12]).split())[7:]  # uv tells causes below its error


def pip():
    """The words that run pip here; None: there is none."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-I", "-m", "pip"]
    folder = sysconfig.get_config_var("WHEEL_PKG_DIR") or os.path.join(os.path.dirname(os.__file__), "ensurepip/_bundled")
    wheels = [wheel for each in (folder, "/usr/share/python-wheels") for wheel in pathlib.Path(each).glob("pip-*.whl")]
    numbers = lambda wheel: [int(each) for each in re.findall("[0-9]+", wheel.name.split("-")[1])]
    return [sys.executable, str(max(wheels, key=numbers) / "pip")] if wheels else None


class Requirements:
    """A requirements.txt as pip reads it, with those that it includes and pip's settings, for uv."""

    OPTIONS = {"-i": "--index-url", "--pypi-url": "--index-url", "-f": "--find-links", "-r": "--requirement",
               "-c": "--constraint", "-e": "--editable"}
    WITH_VALUE = {"--index-url", "--extra-index-url", "--find-links", "--requirement", "--constraint", "--editable",
                  "--no-binary", "--only-binary", "--trusted-host", "--use-feature"}

    def __init__(self):
        self.index, self.more, self.lines, self.constraints, self.seen = None, [], [], [], set()
        self.variables = {}

    def add(self, file, lines, folder=None):
        """Names in it begin at `folder`, or at its own."""
        file = os.path.abspath(file)
        if (file, id(lines)) in self.seen:
            return
        self.seen.add((file, id(lines)))
        try:
            with open(file, "rb") as opened:
                text = self.decode(opened.read())
        except OSError as fault:
            raise Refusal("it cannot be read: %.300s: %s" % (file, fault.strerror)) from None
        for line in self.logical_lines(text):
            self.add_line(line, folder or os.path.dirname(file), lines)

    @staticmethod
    def decode(content):
        for mark, name in ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
                           (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
            if content.startswith(mark):
                return content.decode(name)
        try:
            return content.decode()
        except UnicodeDecodeError:
            return content.decode(locale.getpreferredencoding(False), "replace")

    @staticmethod
    def logical_lines(text):
        whole = ""
        for line in text.splitlines():
            is_comment = re.match(r"\s*#", line)
            if line.endswith("\\") and not is_comment:
                whole += line.rstrip("\\")
                continue
            yield whole + (" " if is_comment else "") + line
            whole = ""
        yield whole

    def add_line(self, line, folder, lines):
        line = re.sub(r"(^|\s+)#.*$", "", line).strip()
        line = re.sub(r"\$\{([A-Z0-9_]+)\}", lambda found: os.environ.get(found[1]) or found[0], line)
        if not line.startswith("-"):
            if line:
                lines.append(self.requirement(line))
            return
        words = shlex.split(line)
        while words:
            name, _, value = words.pop(0).partition("=")
            if not name.startswith("--") and len(name) > 2:  # -rFILE
                name, value = name[:2], name[2:]
            name = self.OPTIONS.get(name, name)
            if name in self.WITH_VALUE and not value:
                if not words:
                    raise Refusal("%s has no value" % name)
                value = words.pop(0)
            if name == "--editable":
                value = " ".join([value, *words])
                words = []
            self.option(name, value, folder, lines)

    def option(self, name, value, folder, lines):
        if name in ("--requirement", "--constraint"):
            into = self.constraints if name == "--constraint" else lines
            if "://" in value and not value.startswith("file:"):
                into.append("%s %s" % (name, value))
            else:
                self.add(os.path.join(folder, re.sub("^file://", "", value)), into)
        elif name == "--editable":  # hosts get a copy
            is_folder = os.path.isdir(re.split(r"[\[;]", value)[0].rstrip())
            lines.append(self.requirement(os.path.abspath(value) if is_folder else value))
        elif name == "--index-url":
            self.index = value
        elif name == "--find-links":
            beside = os.path.join(folder, value)
            self.more.append("--find-links " + (value if "://" in value else beside if os.path.exists(beside) else os.path.abspath(value)))
        elif name in ("--no-binary", "--only-binary"):
            self.more += ["%s %s" % (name, each) for each in re.split("[, ]+", value)]
        elif name in ("--no-index", "--extra-index-url"):
            self.more.append(("%s %s" % (name, value)).strip())
        elif name == "--pre":
            self.variables["UV_PRERELEASE"] = "allow"
        elif name == "--trusted-host":
            self.variables["UV_INSECURE_HOST"] = (self.variables.get("UV_INSECURE_HOST", "") + " " + value).strip()
        elif name == "--require-hashes":
            self.variables["UV_REQUIRE_HASHES"] = "1"
        elif name != "--use-feature":
            raise Refusal("the option %.100s is none that uv has" % name, "leave it out of the file")

    @staticmethod
    def requirement(line):
        """In uv's form: with an absolute path, and a name before `@`."""
        found = re.match(r"(\S+?)#egg=([A-Za-z0-9._-]+(?:\[[^]]*\])?)(?:&\S*)?(.*)", line)
        if found and " @ " not in line:
            return "%s @ %s%s" % (found[2], found[1], found[3])
        word, path, rest = re.match(r"(([^\s;\[]*)\S*)(.*)", line).groups()
        is_path = "://" not in word and "@" not in word and (
            os.sep in path or path.startswith(".") or path.endswith((".whl", ".zip", ".tar.gz")) and os.path.isfile(path))
        return os.path.abspath(path) + line[len(path):] if is_path else line

    def add_settings(self, words):
        """pip's own: its files and PIP_*. uv's variables win."""
        settings = {}
        for line in run([*words, "config", "list"], "pip cannot tell its settings").splitlines():
            key, _, value = line.partition("=")
            section, _, name = key.rpartition(".")
            try:
                value = ast.literal_eval(value)
            except (ValueError, SyntaxError):
                continue
            rank = {"global": 0, "wheel": 1, "install": 2, ":env:": 3}.get(section, -1)
            if rank >= settings.get(name, (0, ""))[0]:
                settings[name] = (rank, value)
        for name, (_, value) in settings.items():
            self.setting(name.replace("_", "-"), value)

    def setting(self, name, value):
        is_on = value.lower() not in ("", "0", "false", "no", "off", "n", "f")
        if name in ("index-url", "extra-index-url") and any(each in os.environ for each in INDEX_VARIABLES):
            return
        variables = {"cert": ("SSL_CERT_FILE",), "client-cert": ("SSL_CLIENT_CERT",), "timeout": ("UV_HTTP_TIMEOUT",),
                     "default-timeout": ("UV_HTTP_TIMEOUT",), "proxy": ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
        if name in variables:
            for each in variables[name]:
                self.variables.setdefault(each, os.environ.get(each, value))
        elif name in ("index-url", "extra-index-url", "find-links", "no-binary", "only-binary", "trusted-host", "constraint"):
            for each in value.split():
                self.option("--" + name, each, os.getcwd(), self.lines)
        elif name in ("no-index", "pre", "require-hashes"):
            if is_on:
                self.option("--" + name, "", os.getcwd(), self.lines)
        elif name == "keyring-provider" and value in ("subprocess", "import"):
            self.variables["UV_KEYRING_PROVIDER"] = "subprocess"
        elif is_on and name in ("prefer-binary", "no-deps", "ignore-requires-python", "no-build-isolation", "config-settings",
                                "global-option", "python-version", "platform", "abi", "implementation", "uploaded-prior-to"):
            raise Refusal("pip's setting %s is none that uv has" % name, "unset it for this run")

    def write(self, folder):
        index = ["--index-url " + self.index] if self.index else []
        for name, lines in (("requirements.txt", index + self.more + self.lines), ("constraints.txt", self.constraints)):
            with open(folder / name, "w") as opened:
                opened.write("".join(each + "\n" for each in lines))

# SPDX-License-Identifier: MIT
"""Makes a channel of real conda packages for a test: `conda_channel.py FOLDER VERSION`.

python is this machine's own, with its standard library; native is a program of C that knows its
prefix, and a text that does; greet, of VERSION, and held
are packages of Python for any machine.
"""
import ctypes
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

# As long as conda-build makes it.
PREFIX = "/opt/conda_" + "placehold_" * 24 + "p"
SUBDIR = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}[sysconfig.get_platform().split("-")[1]]
NUMBER = "%d.%d" % sys.version_info[:2]


def tar_of(files):
    """An archive of {name: (content, mode)}."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def zstd(content):
    library = ctypes.CDLL("libzstd.so.1")
    for function in (library.ZSTD_compress, library.ZSTD_compressBound):
        function.restype = ctypes.c_size_t
    packed = ctypes.create_string_buffer(library.ZSTD_compressBound(ctypes.c_size_t(len(content))))
    size = library.ZSTD_compress(packed, ctypes.c_size_t(len(packed)), content, ctypes.c_size_t(len(content)), 1)
    return packed.raw[:size]


def add(channel, name, version, subdir, files, depends=(), how=None, noarch=None):
    """Writes a package; `how` says for a file whether its prefix is replaced as in text or binary."""
    how = how or {}
    index = {"name": name, "version": version, "build": "0", "build_number": 0, "depends": list(depends),
             "subdir": subdir, "timestamp": 1700000000000}
    paths = [{"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(content).hexdigest(),
              "size_in_bytes": len(content)} |
             ({"file_mode": how[path], "prefix_placeholder": PREFIX} if path in how else {})
             for path, (content, _) in sorted(files.items())]
    info = {"info/paths.json": {"paths": paths, "paths_version": 1}, "info/about.json": {}}
    if noarch:
        index["noarch"] = "python"
        info["info/link.json"] = {"noarch": {"type": "python", "entry_points": noarch}, "package_metadata_version": 1}
    info["info/index.json"] = index
    info = {path: (json.dumps(content).encode(), 0o644) for path, content in info.items()}
    (channel / subdir).mkdir(parents=True, exist_ok=True)
    stem = "%s-%s-0" % (name, version)
    if noarch:  # the older of the two formats
        file = channel / subdir / (stem + ".tar.bz2")
        with tarfile.open(file, "w:bz2") as tar:
            for path, (content, mode) in (info | files).items():
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(content), mode
                tar.addfile(entry, io.BytesIO(content))
    else:
        file = channel / subdir / (stem + ".conda")
        with zipfile.ZipFile(file, "w") as packed:
            packed.writestr("metadata.json", '{"conda_pkg_format_version": 2}')
            packed.writestr("pkg-%s.tar.zst" % stem, zstd(tar_of(files)))
            packed.writestr("info-%s.tar.zst" % stem, zstd(tar_of(info)))
    content = file.read_bytes()
    listed = channel / subdir / "repodata.json"
    data = json.loads(listed.read_text()) if listed.exists() else \
        {"info": {"subdir": subdir}, "packages": {}, "packages.conda": {}}
    data["packages" if noarch else "packages.conda"][file.name] = \
        index | {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    listed.write_text(json.dumps(data))


def own_python():
    """The files of this machine's Python, but for its tests and tools."""
    files = {"bin/%s" % name: (pathlib.Path(sys.executable).resolve().read_bytes(), 0o755)
             for name in ("python", "python3", "python" + NUMBER)}
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    left_out = {"test", "idlelib", "tkinter", "lib2to3", "site-packages", "dist-packages", "__pycache__", "ensurepip",
                "turtledemo", "pydoc_data"}
    for file in sorted(library.rglob("*")):
        parts = file.relative_to(library).parts
        if file.is_file() and not left_out.intersection(parts) and not parts[0].startswith("config-"):
            files["lib/python%s/%s" % (NUMBER, "/".join(parts))] = (file.read_bytes(), 0o755 if file.suffix == ".so" else 0o644)
    # Debian's looks into dist-packages.
    files["lib/python%s/sitecustomize.py" % NUMBER] = \
        (b"import os, site\nsite.addsitedir(os.path.join(os.path.dirname(os.__file__), 'site-packages'))\n", 0o644)
    return files


def native():
    source = 'char prefix[] = "%s";\n#include <stdio.h>\nint main(void) { printf("native in %%s\\n", (char *)prefix); }\n' % PREFIX
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "native"
        subprocess.run(["cc", "-O0", "-x", "c", "-", "-o", program], input=source.encode(), check=True)
        return {"bin/native": (program.read_bytes(), 0o755), "etc/native.conf": (("here=%s\n" % PREFIX).encode(), 0o644)}


channel, version = pathlib.Path(sys.argv[1]), sys.argv[2]
if not channel.exists():
    add(channel, "python", NUMBER + ".0", SUBDIR, own_python())
    add(channel, "native", "1.0", SUBDIR, native(), ["__glibc >=2.17", "__linux >=3.10"],
        {"bin/native": "binary", "etc/native.conf": "text"})
    add(channel, "for_gpus", "1.0", SUBDIR, {"etc/for_gpus": (b"", 0o644)}, ["__cuda >=11"])
    HELD = "def main():\n    print('held of conda')\n"
    add(channel, "held", "1.5", "noarch", {
        "site-packages/held.py": (HELD.encode(), 0o644),
        "site-packages/held-1.5.dist-info/METADATA": (b"Metadata-Version: 2.1\nName: held\nVersion: 1.5\n", 0o644),
        "site-packages/held-1.5.dist-info/RECORD": (b"held.py,,\n", 0o644)}, ["python %s.*" % NUMBER], noarch=["held = held:main"])
GREET = "def main():\n    print('greet %s from', __file__)\n" % version
add(channel, "greet", version, "noarch", {"site-packages/greet.py": (GREET.encode(), 0o644)},
    ["python %s.*" % NUMBER, "native"], noarch=["greet-all = greet:main"])

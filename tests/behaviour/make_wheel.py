# SPDX-License-Identifier: MIT
"""Makes a wheel of one module for a test: `make_wheel.py FOLDER NAME VERSION TEXT [REQUIREMENT...]`.

It has a program of its own name, which imports the module. An extra is written as its requirement's
marker: `words; extra == "more"`.
"""
import base64
import hashlib
import pathlib
import re
import sys
import zipfile

folder, name, version, text, *requires = sys.argv[1:]
info = "%s-%s.dist-info" % (name, version)
extras = sorted(set(re.findall(r'extra == "(\w+)"', " ".join(requires))))
metadata = ["Metadata-Version: 2.1", "Name: " + name, "Version: " + version,
            *("Provides-Extra: " + each for each in extras), *("Requires-Dist: " + each for each in requires)]
files = {name + ".py": text + "\n",
         info + "/METADATA": "\n".join(metadata) + "\n",
         info + "/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
         info + "/entry_points.txt": "[console_scripts]\n%s = %s:main\n" % (name, name)}
listed = [",".join((each, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode(),
                    str(len(content.encode())))) for each, content in files.items()]
files[info + "/RECORD"] = "\n".join([*listed, info + "/RECORD,,", ""])
pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
with zipfile.ZipFile(pathlib.Path(folder, "%s-%s-py3-none-any.whl" % (name, version)), "w") as packed:
    for each, content in files.items():
        packed.writestr(zipfile.ZipInfo(each), content)

#!/bin/bash
# SPDX-License-Identifier: MIT
# dtool-trainer rollout writes a page that plays the episode: its pictures are PNGs of what the camera saw in each step, and in a
# browser it goes on to the end by itself.
. "$(dirname "$0")/harness.sh"
printf '%s\n' 'workload = "objectnav"' 'environment = {least_side = 9, most_side = 9}' > e.toml
"$trainer" rollout e.toml --output e.html > html.log || fail "as a page: exit code $?"
steps=$(sed -n 's/^e.html: success after \([0-9]*\) steps.*/\1/p' html.log)
[ -n "$steps" ] || fail "the file's line lacks how it ended"
"$trainer" rollout e.toml --format html > other.html || fail "a page on standard output: exit code $?"
cmp e.html other.html || fail "the same episode is another page"
/usr/bin/python3 - "$steps" << 'END' || fail "the pictures are not what they should be"
import base64, json, re, struct, sys, zlib
entries = [json.loads(line.rstrip(",\n")) for line in open("e.html") if line.startswith('["')]
assert len(entries) == int(sys.argv[1]) + 1, len(entries)
assert [entry[1].split(":")[0] for entry in entries[:-1]] == [f"step {i + 1}" for i in range(len(entries) - 1)]
for picture, *_ in entries:
    data = base64.b64decode(picture, validate=True)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + body)
        chunks[name] = body
        at += size + 12
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"] and chunks[b"IHDR"] == struct.pack(">IIBBBBB", 128, 64, 8, 2, 0, 0, 0)
    rows = zlib.decompress(chunks[b"IDAT"])
    assert len(rows) == 64 * (1 + 3 * 128) and not any(rows[:: 1 + 3 * 128])
    middle = rows[32 * 385 + 1 :][: 3 * 128]
    depths = middle[3 * 64 :: 3]
    assert depths == middle[3 * 64 + 1 :: 3] == middle[3 * 64 + 2 :: 3], "depths are grey"
    assert 0 < min(depths) and max(depths) < 255, "a house of 9 cells has walls all around"
    assert len(set(zip(middle[: 3 * 64 : 3], middle[1 : 3 * 64 : 3]))) > 1, "a wall has more than one colour"
assert len({entry[0] for entry in entries}) > 1, "the pictures are all the same"
END

command -v chromium > browser.path || { echo "the rest is left out: chromium is not here"; exit 77; }
# look PAGE MILLISECONDS [FLAG]: the page's elements after so much of its own time, or more on a busy machine.
look() { timeout 120 chromium --headless --no-sandbox --disable-gpu --virtual-time-budget="$2" "${@:3}" --dump-dom "$1" 2> browser.log; }
sed 's|</body>|<script>at("eye").onload = () => { document.title = `${at("eye").naturalWidth}x${at("eye").naturalHeight}`; };</script></body>|' e.html > probe.html
look probe.html 100 --force-prefers-reduced-motion > begin.dom || fail "chromium: exit code $?"
look probe.html $((1000 * (steps + 10))) > end.dom || fail "chromium: exit code $?"
grep -q '<title>128x64</title>' end.dom || fail "the browser shows no picture"
grep -q '<p id="words">step 1: ' begin.dom || fail "the page does not begin with the first step, or plays for somebody who wants no motion"
grep -q '<p id="words">success after' end.dom || fail "the page does not play to the end"
grep -q '<button id="play">Play</button>' end.dom || fail "the page does not stop at the end"
[ "$(grep -o '<g id="agent" transform="[^"]*"' begin.dom)" != "$(grep -o '<g id="agent" transform="[^"]*"' end.dom)" ] ||
  fail "the agent on the map does not move"

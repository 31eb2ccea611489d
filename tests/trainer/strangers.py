# SPDX-License-Identifier: MIT
"""Speaks to ports that are not its business, as whoever reaches them can: ADDRESS:PORT...

Prints `answered PORT KIND BYTES` where one answers, then `done`, and holds its connections until its input ends.
"""
import select
import socket
import sys
import time

HELLO = b"dtool 1\n" + bytes(8) + b"0123456789abcdef"
PROOF = b"0123456789abcdef" * 2
KINDS = {
    "an old greeting": b"hello 2 1 9 9 stranger\n",
    "a forged greeting": HELLO + PROOF,
    "a forged greeting and request": HELLO + PROOF + b"\x0d\0\0\0" + b"1 set x00 x00" + PROOF,
    "a lie": b"finished\ncause\tcertain\t1\tkill\ta lie\t\n",
    "another protocol": b"GET / HTTP/1.1\r\nHost: there\r\n\r\n",
    "noise": bytes((i * 73 + i // 7) % 256 for i in range(5000)),
    "half a megabyte": b"x" * (1 << 19),
    "one byte": b"\0",
    "lines without end": b"\n" * (1 << 16),
    "nothing": b"",
}
HELD = 300


def connect(where):
    address, port = where.rsplit(":", 1)
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    made.setblocking(False)
    made.connect_ex((address.strip("[]"), int(port)))
    return made


def send_some(made, left):
    try:
        return left[made.send(left):]
    except BlockingIOError:
        return left
    except OSError:
        return b""  # hung up on


def speak(ports):
    """Each kind to each port, all at once, for as long as something is still to be said."""
    left, who = {}, {}
    for where in ports:
        for kind, text in KINDS.items():
            made = connect(where)
            left[made], who[made] = text, (where, kind)
    ends = time.monotonic() + 1.5
    while time.monotonic() < ends:
        readable, writable, _ = select.select(list(who), [each for each in left if left[each]], [], 0.1)
        for made in writable:
            left[made] = send_some(made, left[made])
        for made in readable:
            try:
                answer = made.recv(1000)
            except OSError:
                answer = b""
            if answer:
                print("answered", *who[made], answer, flush=True)
            else:
                who.pop(made)
                left.pop(made)
                made.close()
    return list(who)  # held as well


ports = sys.argv[1:]
held = speak(ports)
for where in ports:
    held += [connect(where) for _ in range(HELD)]
print("done", flush=True)
sys.stdin.read()

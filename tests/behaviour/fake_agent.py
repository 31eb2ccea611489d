#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An ssh-agent that passes questions on to a real one, and stalls where it is told to: fake_agent.py SOCKET REAL_SOCKET FOLDER.

FOLDER/stall names what it does not answer while the file has that word: `list`, `sign`, or `connect`, which is not taking anybody in.
FOLDER/takes_nobody is there once it does not.
FOLDER/refuse: signatures are refused. FOLDER/clients has the number of those who are connected. SOCKET is there once it listens."""
import os
import socket
import struct
import sys
import threading
import time

path, real, folder = sys.argv[1:4]
lock = threading.Lock()
clients = 0


def stalls(what):
    try:
        with open(os.path.join(folder, "stall")) as file:
            return file.read().strip() == what
    except FileNotFoundError:
        return False


def count(change):
    global clients
    with lock:
        clients += change
        name = os.path.join(folder, "clients")
        with open(name + ".new", "w") as file:
            file.write(f"{clients}\n")
        os.rename(name + ".new", name)


def exactly(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def message(connection):
    return exactly(connection, struct.unpack(">I", exactly(connection, 4))[0])


def gone(connection):
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False


def serve(connection):
    count(1)
    try:
        with connection, socket.socket(socket.AF_UNIX) as agent:
            agent.connect(real)
            while True:
                question = message(connection)
                what = {11: "list", 13: "sign"}.get(question[0], "")
                while stalls(what) and not gone(connection):
                    time.sleep(0.02)
                if what == "sign" and os.path.exists(os.path.join(folder, "refuse")):
                    answer = b"\x05"
                else:
                    agent.sendall(struct.pack(">I", len(question)) + question)
                    answer = message(agent)
                connection.sendall(struct.pack(">I", len(answer)) + answer)
    except (EOFError, OSError):
        pass
    finally:
        count(-1)


listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(0)
count(0)
while True:
    while stalls("connect"):
        open(os.path.join(folder, "takes_nobody"), "w").close()
        time.sleep(0.02)
    listener.settimeout(0.1)
    try:
        taken, _ = listener.accept()
    except TimeoutError:
        continue
    taken.settimeout(None)
    threading.Thread(target=serve, args=(taken,), daemon=True).start()

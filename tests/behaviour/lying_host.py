# SPDX-License-Identifier: MIT
# Stands in for dtool-host on a host that lies: lying_host.py MODE PROGRAM ARGUMENTS... runs the true one, and changes what it says.
#   wrong     other bytes for the hosts that it serves       drip      one byte in a while        mute      a welcome, and then nothing
#   claims    mute, and it says that it has all at once      complains of each host that serves it, which it says sent wrong bytes
import os
import socket
import struct
import subprocess
import sys
import threading
import time

TREE_NEWS, PARCEL_REPLY = 41, 76
HELLO, WELCOME = 64, 48
mode, program = sys.argv[1], sys.argv[2:]
if program[1] != "serve":
    os.execv(program[0], program)
served = {}  # the port of whoever stands in for a server, by the server's port


def exactly(connection, size):
    data = b""
    while len(data) < size and (piece := connection.recv(size - len(data))):
        data += piece
    return data


def serve(caller, port):
    try:
        true = socket.create_connection(("127.0.0.1", port))
        true.sendall(exactly(caller, HELLO))
        caller.sendall(exactly(true, WELCOME))
        while mode in ("mute", "claims") and caller.recv(1):
            pass
        while piece := true.recv(1 if mode == "drip" else 65536):
            time.sleep(0.2 if mode == "drip" else 0)
            caller.sendall(bytes(each ^ 1 for each in piece) if mode == "wrong" else piece)
    except OSError:
        pass
    caller.close()


def listen(port):
    listener = socket.create_server(("", 0))

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0], port), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def changed(kind, body):
    if kind == PARCEL_REPLY and mode == "complains":
        missed = b"it says so"
        return b"\0" + struct.pack("<QQ", 0, len(missed)) + missed + b"\1"
    if kind != TREE_NEWS or mode == "complains":
        return body
    port, came = struct.unpack("<QQ", body[-16:])
    if port and port not in served:
        served[port] = listen(port)
    return body[:-16] + struct.pack("<QQ", served.get(port, 0), 1 << 62 if mode == "claims" else came)


host = subprocess.Popen(program, stdout=subprocess.PIPE)
os.write(1, host.stdout.readline())  # its greeting
while len(head := host.stdout.read(6)) == 6:
    size, kind = struct.unpack("<IH", head)
    body = changed(kind, host.stdout.read(size))
    frame = struct.pack("<IH", len(body), kind) + body
    while frame:
        frame = frame[os.write(1, frame):]
os._exit(host.wait())

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An HTTP server that fails in the way its address says: data_server.py FOLDER PORT_FILE LOG.

The first part of a path is the behaviour, the last a file of FOLDER; a client that takes it for a proxy asks with the whole address. LOG gets a line for each request, with its range.
It ends by itself after four minutes, should the test that started it be gone.
"""
import http.server
import os
import sys
import threading
import time

FOLDER, PORT_FILE, LOG = sys.argv[1:]
LOCK = threading.Lock()
ASKED = {}  # path: how often


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def behaviour(self):
        return self.path.split("/")[3 if self.path.startswith("http://") else 1]

    def do_GET(self):
        behaviour, name = self.behaviour(), self.path.split("/")[-1]
        with LOCK:
            ASKED[self.path] = number = ASKED.get(self.path, 0) + 1
            with open(LOG, "a") as log:
                log.write(f"{self.path} {self.headers.get('Range', 'whole')}\n")
        with open(os.path.join(FOLDER, name), "rb") as file:
            content = file.read()
        status = {"missing": 404, "forbidden": 403, "busy": 503}.get(behaviour)
        if behaviour == "twice_busy" and number <= 2:
            status = 500
        if behaviour == "redirect":
            self.answer(302, b"", Location="/good/" + name)
        elif status:
            self.answer(status, b"<html>sorry</html>")
        else:
            self.send_part(behaviour, number, content)

    def send_part(self, behaviour, number, content):
        begin = 0
        if behaviour == "corrupt":
            content = content[:-1] + bytes([content[-1] ^ 1])
        if behaviour == "endless":
            content = content + b"\0" * 200_000_000
        asked = self.headers.get("Range")
        if asked and behaviour != "no_ranges":
            begin = int(asked[len("bytes="):].rstrip("-"))
            if begin >= len(content):
                self.answer(416, b"")
                return
        part = content[begin:]
        limit = {"cut_short": 100_000, "cut_once": len(content) // 2 if number == 1 else None,
                 "no_ranges": len(content) // 2 if number == 1 else None,
                 "stalls": len(content) // 2, "stalls_once": len(content) // 2 if number == 1 else None}.get(behaviour)
        ranges = {"Content-Range": f"bytes {begin}-{len(content) - 1}/{len(content)}"} if begin else {}
        self.answer(206 if begin else 200, part, None if limit is None else part[:limit], **ranges)
        if behaviour.startswith("stalls") and limit is not None:
            time.sleep(60)

    def answer(self, status, body, sent=None, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        sent = body if sent is None else sent
        behaviour = self.behaviour()
        if behaviour == "held":  # until the test says go
            end = time.monotonic() + 60
            while not os.path.exists("go") and time.monotonic() < end:
                time.sleep(0.05)
        pause = {"slow": 0.1}.get(behaviour, 0)
        try:
            for at in range(0, len(sent), 100_000):
                self.wfile.write(sent[at:at + 100_000])
                self.wfile.flush()
                time.sleep(pause)
        except OSError:
            pass  # the client has heard enough


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
stop = threading.Timer(240, os._exit, [1])
stop.daemon = True
stop.start()
with open(PORT_FILE + ".new", "w") as port_file:
    port_file.write(str(server.server_port))
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()

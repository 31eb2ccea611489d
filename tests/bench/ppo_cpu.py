# SPDX-License-Identifier: MIT
"""Seconds of a core that processes have used, for tests/bench/ppo and its peers."""
import os
import pathlib


def of_session(session):
    """Of all processes that live in the session, with those that they have waited for."""
    total = 0
    for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        total += sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
    return total / os.sysconf("SC_CLK_TCK")

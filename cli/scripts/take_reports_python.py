# Takes the reports of a run's machines (report.sh) and hands each the decision, the newest line on standard input; prints
# `report PLACE TEXT` for each that is new, and every few seconds for each that is not. Ends with its input. Arguments: port,
# number of machines. Follows listen_python.py; the same as take_reports_perl.pl, for hosts that have the one or the other.
import os, select, signal, subprocess, sys, time

signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the session's terminal goes before its last words are told
port, machines = int(sys.argv[1]), int(sys.argv[2])
token = open("token").readline().strip()
try:
    listener = listen_on(port)
except OSError as error:
    sys.exit(f"lost cannot listen on port {port}: {error.strerror}")
decision, unread, said = b"0 run\n", b"", {}
while True:
    ready, _, _ = select.select([0, listener], [], [])
    if 0 in ready:
        new = os.read(0, 65536)
        if not new:
            break
        *lines, unread = (unread + new).split(b"\n")
        if lines:
            decision = lines[-1] + b"\n"
    if listener in ready:
        peer, _ = listener.accept()
        try:
            peer.settimeout(0.5)
            words = peer.recv(4096).decode(errors="replace").rstrip("\n").split(" ", 2)
            if len(words) != 3 or words[0] != token or not words[1].isdecimal() or int(words[1]) >= machines:
                continue
            peer.sendall(decision)
        except OSError:
            continue
        finally:
            peer.close()
        text, at = said.get(words[1], ("", 0))
        if text != words[2] or time.monotonic() - at > 5:
            said[words[1]] = words[2], time.monotonic()
            print("report", words[1], words[2], flush=True)
if not os.path.exists("exit_code"):  # the session was killed
    subprocess.call(["bash", "./end_processes", str(os.getpid())])

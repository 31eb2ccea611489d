# Takes the reports of a run's machines (report.sh, which says how both sides prove themselves) and hands each the decision, the newest
# line on standard input; prints `report PLACE TEXT` for each that is new, and every few seconds for each that is not. Ends with its
# input. Arguments: port, number of machines. Follows listen_python.py; the same as take_reports_perl.pl, for hosts that have the one or
# the other.
import hmac, os, re, select, signal, subprocess, sys

signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the session's terminal goes before its last words are told
port, machines = int(sys.argv[1]), int(sys.argv[2])
token = open("token", "rb").readline().strip()
if not re.fullmatch(rb"[0-9a-f]{32,64}", token):
    sys.exit("token: not what it should be")
try:
    listener = listen_on(port)
except OSError as error:
    sys.exit(f"lost cannot listen on port {port}: {error.strerror}")
shape = re.compile(rb"([0-9a-f]{64}) (([1-9][0-9]{0,5}) ([0-9a-f]{32}) ([0-9a-f]{32}) ([ -~]+))")


def mac(text):
    return hmac.new(token, text, "sha256").hexdigest().encode()


def take(peer, line):
    match = shape.fullmatch(line)
    if match is None or int(match[3]) >= machines or not hmac.compare_digest(match[1], mac(b"report " + match[2])):
        return
    _, _, place, challenge, nonce, report = match.groups()
    is_taken = challenges.setdefault(place, os.urandom(16).hex().encode()) == challenge
    if is_taken:
        challenges[place] = os.urandom(16).hex().encode()
    answer = b" ".join((b"taken" if is_taken else b"again", challenges[place], decision))
    if len(answer) > 8192:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * len(answer))
    peer.send(mac(b" ".join((b"decision", place, nonce, answer))) + b" " + answer + b"\n")
    known, at = said.get(place, (b"", 0))
    if is_taken and (known != report or time.monotonic() - at > 5):
        said[place] = report, time.monotonic()
        print("report", place.decode(), report.decode(), flush=True)


decision, unread, said, challenges = b"0 run", b"", {}, {}
while True:
    ready, _, _ = select.select([0, listener, *guests], [], [], 1 if guests else None)
    if 0 in ready:
        new = os.read(0, 65536)
        if not new:
            break
        *lines, unread = (unread + new).split(b"\n")
        if lines:
            decision = lines[-1]
    for peer, line in hear(listener, ready):
        try:
            take(peer, line)
        except OSError:
            pass
        peer.close()
if not os.path.exists("exit_code"):  # the session was killed
    subprocess.call(["bash", "./end_processes", str(os.getpid())])

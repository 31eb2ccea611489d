# Hands a package to other hosts while it still comes here (pass_on.sh). Follows listen_python.py; the same as serve_perl.pl, for
# hosts that have the one or the other. Argument: the file that grows. Standard input: a line that others must say to be let in,
# then `whole` once nobody else is to be expected; at its end this ends at once. Prints the port.
import os, random, select, sys

package = os.open(sys.argv[1], os.O_RDONLY)
secret = b""
while not secret.endswith(b"\n"):
    byte = os.read(0, 1)
    if not byte:
        sys.exit()
    secret += byte
listener = None
for _ in range(50):
    port = random.randint(20000, 31999)
    try:
        listener = listen_on(port)
        break
    except OSError:
        pass
if listener is None:
    sys.exit()
print(port, flush=True)

patience, step = 10, 262144  # seconds in which a host must take so many bytes
most, linger = 64, 1  # hosts at once; seconds after the last one came
longest = 600  # seconds after the last one was to be expected
whole_at, came, peers = None, time.monotonic(), {}


def serve(socket_of_peer, peer):
    before = peer["at"]
    peer["at"] += socket_of_peer.send(os.pread(package, step, before))
    if peer["at"] // step > before // step:
        peer["since"] = time.monotonic()


while True:
    now, size, waits = time.monotonic(), os.fstat(package).st_size, False
    write = []
    for socket_of_peer, peer in list(peers.items()):
        if peer["at"] < size:
            write.append(socket_of_peer)
        elif whole_at is not None:
            del peers[socket_of_peer]
            continue
        else:
            peer["since"], waits = now, True
        if now - peer["since"] > patience:
            del peers[socket_of_peer]
    # Guests keep nobody here.
    if whole_at is not None and (not peers and now - came > linger or now - whole_at > longest):
        break
    readable, writable, _ = select.select([0, listener, *guests], write, [], 0.05 if waits else 0.5)
    if 0 in readable:
        if not os.read(0, 64):
            sys.exit()
        whole_at = time.monotonic()
    for socket_of_peer in writable:
        if socket_of_peer not in peers:
            continue
        try:
            serve(socket_of_peer, peers[socket_of_peer])
        except BlockingIOError:
            pass
        except OSError:
            del peers[socket_of_peer]
    for guest, line in hear(listener, readable):
        if line + b"\n" == secret and len(peers) < most:
            came = time.monotonic()
            peers[guest] = {"at": 0, "since": came}
        else:
            guest.close()

# Hands a package to other hosts while it still comes here (pass_on.sh). Follows listen_python.py; the same as serve_perl.pl, for
# hosts that have the one or the other. Argument: the file that grows. Standard input: a line that others must say to be let in,
# then `whole` once nobody else is to be expected; at its end this ends at once. Prints the port.
import os, random, select, sys, time

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


def take_in():
    socket_of_peer, _ = listener.accept()
    if len(peers) >= most:
        return
    socket_of_peer.setblocking(False)
    peers[socket_of_peer] = {"said": b"", "at": None, "since": time.monotonic()}


# Whether the host stays.
def listen_to(socket_of_peer, peer):
    global came
    said = socket_of_peer.recv(256)
    peer["said"] += said
    if peer["said"] == secret:
        peer["at"], came = 0, time.monotonic()
        return True
    return bool(said) and len(peer["said"]) < len(secret) and b"\n" not in peer["said"]


def serve(socket_of_peer, peer):
    before = peer["at"]
    peer["at"] += socket_of_peer.send(os.pread(package, step, before))
    if peer["at"] // step > before // step:
        peer["since"] = time.monotonic()
    return True


while True:
    now, size, waits = time.monotonic(), os.fstat(package).st_size, False
    read, write = [0, listener], []
    for socket_of_peer, peer in list(peers.items()):
        if peer["at"] is None:
            read.append(socket_of_peer)
        elif peer["at"] < size:
            write.append(socket_of_peer)
        elif whole_at is not None:
            del peers[socket_of_peer]
            continue
        else:
            peer["since"], waits = now, True
        if now - peer["since"] > patience:
            del peers[socket_of_peer]
    # Who has not said the secret keeps nobody here.
    serves = any(peer["at"] is not None for peer in peers.values())
    if whole_at is not None and (not serves and now - came > linger or now - whole_at > longest):
        break
    readable, writable, _ = select.select(read, write, [], 0.05 if waits else 0.5)
    if 0 in readable:
        if not os.read(0, 64):
            sys.exit()
        whole_at = time.monotonic()
    if listener in readable:
        take_in()
    for socket_of_peer, peer in list(peers.items()):
        try:
            stays = True
            if socket_of_peer in readable:
                stays = listen_to(socket_of_peer, peer)
            elif socket_of_peer in writable:
                stays = serve(socket_of_peer, peer)
        except BlockingIOError:
            continue
        except OSError:
            stays = False
        if not stays:
            del peers[socket_of_peer]

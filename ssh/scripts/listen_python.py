# What listens on hosts begins with this. Whoever connects is a guest until a whole line has come from it, and is told nothing; only what
# follows this answers, once the line was right. A guest has so many bytes and seconds, and there are so many guests at most: then the
# oldest goes of the address that has the most, so that who floods a host from one machine keeps no other machine away.
# The same as listen_perl.pl, for hosts that have the one or the other.
import errno, socket, time

most_guests, longest_line, patience_with_guests = 256, 4096, 5
guests = {}  # by socket, the oldest first: address, what was said, since when


# A socket for IPv6 and IPv4, or for the address alone, where this host has it as it is written; or an OSError.
def listen_on(port, address=None):
    for family in (socket.AF_INET, socket.AF_INET6) if address else ():
        try:
            socket.inet_pton(family, address)
        except OSError:
            continue
        try:
            listener = socket.create_server((address, port), family=family, backlog=1024)
            listener.setblocking(False)
            return listener
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:  # a gateway may have it instead
                raise
    try:
        listener = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
    except OSError:
        listener = socket.create_server(("", port), backlog=1024)
    listener.setblocking(False)
    return listener


# All of this machine's own loopback addresses are one.
def address_in(name):
    address = name[0].replace("::ffff:", "")
    return "here" if address.startswith("127.") else address


def forget_guest(peer):
    del guests[peer]
    peer.close()


def make_room():
    addresses = [guest[0] for guest in guests.values()]
    most = max(set(addresses), key=addresses.count)
    forget_guest(next(peer for peer, guest in guests.items() if guest[0] == most))


def take_in(listener):
    new = []
    for _ in range(64):
        try:
            peer, name = listener.accept()
        except OSError as error:
            if guests and error.errno in (errno.EMFILE, errno.ENFILE):
                make_room()
            break
        if len(guests) >= most_guests:
            make_room()
        peer.setblocking(False)
        guests[peer] = [address_in(name), b"", time.monotonic()]
        new.append(peer)
    return new


# Who has said a whole line and nothing else, as (socket, line), of those that select found ready; guests no more.
def hear(listener, ready):
    spoke = []
    for peer, guest in list(guests.items()):
        if time.monotonic() - guest[2] > patience_with_guests:
            forget_guest(peer)
    for peer in [each for each in ready if each in guests] + (take_in(listener) if listener in ready else []):
        if peer not in guests:
            continue
        guest = guests[peer]
        try:
            said = peer.recv(longest_line - len(guest[1]))
        except BlockingIOError:
            continue
        except OSError:
            said = b""
        guest[1] += said
        line, end, rest = guest[1].partition(b"\n")
        if end and not rest:
            del guests[peer]
            spoke.append((peer, line))
        elif end or not said or len(guest[1]) >= longest_line:
            forget_guest(peer)
    return spoke

# What listens on hosts begins with this. listen_on(port): a socket for IPv6 and IPv4, or an OSError. The same as
# listen_perl.pl, for hosts that have the one or the other.
import socket


def listen_on(port):
    try:
        listener = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
    except OSError:
        listener = socket.create_server(("", port), backlog=1024)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 5)  # who says nothing holds nobody up
    return listener

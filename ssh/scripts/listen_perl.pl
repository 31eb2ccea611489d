# What listens on hosts begins with this. listen_on PORT: a socket for IPv6 and IPv4, or nothing, and $! says why. The same as
# listen_python.py, for hosts that have the one or the other.
use strict;
use warnings;
use Socket;

sub listen_at {
    my ($family, $address) = @_;
    socket(my $socket, $family, SOCK_STREAM, 0) or return;
    setsockopt($socket, SOL_SOCKET, SO_REUSEADDR, 1);
    setsockopt($socket, Socket::IPPROTO_IPV6(), Socket::IPV6_V6ONLY(), 0) if $family == AF_INET6;
    setsockopt($socket, Socket::IPPROTO_TCP(), 9, 5);    # TCP_DEFER_ACCEPT: who says nothing holds nobody up
    return bind($socket, $address) && listen($socket, 1024) ? $socket : undef;
}

sub listen_on {
    my ($port) = @_;
    return listen_at(AF_INET6, Socket::pack_sockaddr_in6($port, Socket::IN6ADDR_ANY()))
      || listen_at(AF_INET, pack_sockaddr_in($port, INADDR_ANY));
}

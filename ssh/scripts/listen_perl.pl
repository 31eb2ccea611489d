# What listens on hosts begins with this. Whoever connects is a guest until a whole line has come from it, and is told nothing; only what
# follows this answers, once the line was right. A guest has so many bytes and seconds, and there are so many guests at most: then the
# oldest goes of the address that has the most, so that who floods a host from one machine keeps no other machine away.
# The same as listen_python.py, for hosts that have the one or the other.
use strict;
use warnings;
use Fcntl;
use Socket;

my ($most_guests, $longest_line, $patience_with_guests) = (256, 4096, 5);
my (%guests, %guests_of, $last_guest);

sub listen_at {
    my ($family, $address) = @_;
    socket(my $socket, $family, SOCK_STREAM, 0) or return;
    setsockopt($socket, SOL_SOCKET, SO_REUSEADDR, 1);
    setsockopt($socket, Socket::IPPROTO_IPV6(), Socket::IPV6_V6ONLY(), 0) if $family == AF_INET6;
    fcntl($socket, F_SETFL, O_NONBLOCK);
    return bind($socket, $address) && listen($socket, 1024) ? $socket : undef;
}

# listen_on PORT [ADDRESS]: a socket for IPv6 and IPv4, or for the address alone, where this host has it as it is written; or nothing,
# and $! says why.
sub listen_on {
    my ($port, $address) = @_;
    for (defined $address ? ([AF_INET, \&pack_sockaddr_in], [AF_INET6, \&Socket::pack_sockaddr_in6]) : ()) {
        my ($family, $pack) = @$_;
        my $bytes = Socket::inet_pton($family, $address) or next;
        my $socket = listen_at($family, $pack->($port, $bytes));
        return $socket if $socket || !$!{EADDRNOTAVAIL};    # a gateway may have it instead
    }
    return listen_at(AF_INET6, Socket::pack_sockaddr_in6($port, Socket::IN6ADDR_ANY()))
      || listen_at(AF_INET, pack_sockaddr_in($port, INADDR_ANY));
}

# All of this machine's own loopback addresses are one.
sub address_in {
    my ($name) = @_;
    my $address = sockaddr_family($name) == AF_INET6 ? (Socket::unpack_sockaddr_in6($name))[1] : (unpack_sockaddr_in($name))[1];
    return $address =~ /^(?:\0{10}\xff\xff)?\x7f...\z/s ? 'here' : $address;
}

sub forget_guest {
    my ($number) = @_;
    my $address = (delete $guests{$number})->{address};
    delete $guests_of{$address} unless --$guests_of{$address};
}

sub make_room {
    my ($address) = sort { $guests_of{$b} <=> $guests_of{$a} } keys %guests_of;
    my ($number) = sort { $guests{$a}->{number} <=> $guests{$b}->{number} } grep { $guests{$_}->{address} eq $address } keys %guests;
    forget_guest($number);
}

sub take_in {
    my ($listener) = @_;
    my @new;
    for (1 .. 64) {
        my $name = accept(my $peer, $listener);
        if (!$name) {
            make_room() if %guests && ($!{EMFILE} || $!{ENFILE});
            last;
        }
        make_room() if keys %guests >= $most_guests;
        fcntl($peer, F_SETFL, O_NONBLOCK);
        my $address = address_in($name);
        ++$guests_of{$address};
        $guests{fileno $peer} = {socket => $peer, address => $address, said => '', since => time, number => ++$last_guest};
        push @new, fileno $peer;
    }
    return @new;
}

# The bits for select of whom to listen to, beside file $file: the listener and its guests.
sub ears {
    my ($listener, $file) = @_;
    my $bits = '';
    vec($bits, $_, 1) = 1 for $file, fileno($listener), keys %guests;
    return $bits;
}

# hear(LISTENER, READY): who has said a whole line and nothing else, as [socket, line]; guests no more.
sub hear {
    my ($listener, $ready) = @_;
    my @spoke;
    for my $number (keys %guests) { forget_guest($number) if abs(time - $guests{$number}->{since}) > $patience_with_guests; }
    my @numbers = grep { vec($ready, $_, 1) } keys %guests;
    push @numbers, take_in($listener) if vec($ready, fileno $listener, 1);
    for my $number (@numbers) {
        my $guest = $guests{$number} or next;
        my $count = sysread($guest->{socket}, $guest->{said}, $longest_line - length $guest->{said}, length $guest->{said});
        next if !defined $count && $!{EAGAIN};
        my $is_over = !$count || length $guest->{said} >= $longest_line;
        if ($guest->{said} =~ /^([^\n]*)\n(.*)\z/s) {
            push @spoke, [$guest->{socket}, $1] if $2 eq '';
            $is_over = 1;
        }
        forget_guest($number) if $is_over;
    }
    return @spoke;
}

# Hands a package to other hosts while it still comes here (pass_on.sh). Follows listen_perl.pl; the same as serve_python.py, for
# hosts that have the one or the other. Argument: the file that grows. Standard input: a line that others must say to be let in,
# then `whole` once nobody else is to be expected; at its end this ends at once. Prints the port.
use Fcntl;

my ($file) = @ARGV;
$SIG{PIPE} = 'IGNORE';
$| = 1;
open(my $package, '<:raw', $file) or die;
my $secret = '';
while ($secret !~ /\n$/) { sysread(STDIN, $secret, 1, length $secret) or exit; }
my ($listener, $port);
for (1 .. 50) {
    $port = 20000 + int rand 12000;
    last if $listener = listen_on($port);
}
$listener or exit;
print "$port\n";

my $patience = 10;            # seconds for which a host may take nothing
my ($most, $linger) = (64, 1);    # hosts at once; seconds after the last one came
my ($is_whole, $came, %peers) = (0, time);

sub take_in {
    accept(my $peer, $listener) or return;
    return if keys %peers >= $most;
    fcntl($peer, F_SETFL, O_NONBLOCK);
    $came = time;
    $peers{fileno $peer} = {socket => $peer, said => '', at => undef, since => time};
}

# Whether the host stays.
sub listen_to {
    my ($peer) = @_;
    sysread($peer->{socket}, $peer->{said}, 256, length $peer->{said}) or return 0;
    $peer->{at} = 0 if $peer->{said} eq $secret;
    return defined $peer->{at} || (length $peer->{said} < length $secret && $peer->{said} !~ /\n/);
}

sub serve {
    my ($peer) = @_;
    sysseek($package, $peer->{at}, 0) && sysread($package, my $bytes, 262144) or return 0;
    my $count = syswrite($peer->{socket}, $bytes);
    return $!{EAGAIN} unless defined $count;
    $peer->{at} += $count;
    $peer->{since} = time;
    return 1;
}

while (1) {
    my $size = -s $package;
    my ($read, $write, $waits) = ('', '', 0);
    vec($read, 0, 1) = vec($read, fileno $listener, 1) = 1;
    for my $number (keys %peers) {
        my $peer = $peers{$number};
        if (!defined $peer->{at}) { vec($read, $number, 1) = 1; }
        elsif ($peer->{at} < $size) { vec($write, $number, 1) = 1; }
        elsif ($is_whole) { delete $peers{$number}; next; }
        else { $peer->{since} = time; $waits = 1; }
        delete $peers{$number} if time - $peer->{since} > $patience;
    }
    last if $is_whole && !%peers && time - $came > $linger;
    next if select($read, $write, undef, $waits ? 0.05 : 0.5) < 1;
    if (vec($read, 0, 1)) {
        sysread(STDIN, my $word, 64) or exit;
        $is_whole = 1;
    }
    take_in() if vec($read, fileno $listener, 1);
    for my $number (keys %peers) {
        my $peer = $peers{$number};
        my $stays = vec($read, $number, 1) ? listen_to($peer) : vec($write, $number, 1) ? serve($peer) : 1;
        delete $peers{$number} unless $stays;
    }
}

# Hands a package to other hosts while it still comes here (pass_on.sh). Follows listen_perl.pl; the same as serve_python.py, for
# hosts that have the one or the other. Argument: the file that grows. Standard input: a line that others must say to be let in,
# then `whole` once nobody else is to be expected; at its end this ends at once. Prints the port.
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

my ($patience, $step) = (10, 262144);    # seconds in which a host must take so many bytes
my ($most, $linger) = (64, 1);           # hosts at once; seconds after the last one came
my $longest = 600;                       # seconds after the last one was to be expected
my ($whole_at, $came, %peers) = (undef, time);

# Of one that has said the secret.
sub welcome {
    my ($socket) = @_;
    return if keys %peers >= $most;
    $peers{fileno $socket} = {socket => $socket, at => 0, since => time};
    $came = time;
}

sub serve {
    my ($peer) = @_;
    sysseek($package, $peer->{at}, 0) && sysread($package, my $bytes, $step) or return 0;
    my $count = syswrite($peer->{socket}, $bytes);
    return $!{EAGAIN} unless defined $count;
    $peer->{since} = time if int(($peer->{at} + $count) / $step) > int($peer->{at} / $step);
    $peer->{at} += $count;
    return 1;
}

while (1) {
    my $size = -s $package;
    my ($write, $waits) = ('', 0);
    for my $number (keys %peers) {
        my $peer = $peers{$number};
        if ($peer->{at} < $size) { vec($write, $number, 1) = 1; }
        elsif (defined $whole_at) { delete $peers{$number}; next; }
        else { $peer->{since} = time; $waits = 1; }
        delete $peers{$number} if time - $peer->{since} > $patience;
    }
    # Guests keep nobody here.
    last if defined $whole_at && (!%peers && time - $came > $linger || time - $whole_at > $longest);
    my $read = ears($listener, 0);
    next if select($read, $write, undef, $waits ? 0.05 : 0.5) < 0;
    if (vec($read, 0, 1)) {
        sysread(STDIN, my $word, 64) or exit;
        $whole_at = time;
    }
    for my $number (grep { vec($write, $_, 1) } keys %peers) { serve($peers{$number}) or delete $peers{$number}; }
    for (hear($listener, $read)) { welcome($_->[0]) if "$_->[1]\n" eq $secret; }
}

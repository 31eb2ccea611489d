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

my ($patience, $step) = (10, 262144);    # seconds in which a host must take so many bytes
my ($most, $linger) = (64, 1);           # hosts at once; seconds after the last one came
my $longest = 600;                       # seconds after the last one was to be expected
my ($whole_at, $came, %peers) = (undef, time);

sub take_in {
    accept(my $peer, $listener) or return;
    return if keys %peers >= $most;
    fcntl($peer, F_SETFL, O_NONBLOCK);
    $peers{fileno $peer} = {socket => $peer, said => '', at => undef, since => time};
}

# Whether the host stays.
sub listen_to {
    my ($peer) = @_;
    sysread($peer->{socket}, $peer->{said}, 256, length $peer->{said}) or return 0;
    ($peer->{at}, $came) = (0, time) if $peer->{said} eq $secret;
    return defined $peer->{at} || (length $peer->{said} < length $secret && $peer->{said} !~ /\n/);
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
    my ($read, $write, $waits) = ('', '', 0);
    vec($read, 0, 1) = vec($read, fileno $listener, 1) = 1;
    for my $number (keys %peers) {
        my $peer = $peers{$number};
        if (!defined $peer->{at}) { vec($read, $number, 1) = 1; }
        elsif ($peer->{at} < $size) { vec($write, $number, 1) = 1; }
        elsif (defined $whole_at) { delete $peers{$number}; next; }
        else { $peer->{since} = time; $waits = 1; }
        delete $peers{$number} if time - $peer->{since} > $patience;
    }
    # Who has not said the secret keeps nobody here.
    my $serves = grep { defined $_->{at} } values %peers;
    last if defined $whole_at && (!$serves && time - $came > $linger || time - $whole_at > $longest);
    next if select($read, $write, undef, $waits ? 0.05 : 0.5) < 1;
    if (vec($read, 0, 1)) {
        sysread(STDIN, my $word, 64) or exit;
        $whole_at = time;
    }
    take_in() if vec($read, fileno $listener, 1);
    for my $number (keys %peers) {
        my $peer = $peers{$number};
        my $stays = vec($read, $number, 1) ? listen_to($peer) : vec($write, $number, 1) ? serve($peer) : 1;
        delete $peers{$number} unless $stays;
    }
}

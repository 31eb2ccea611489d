# Takes the reports of a run's machines (report.sh, which says how both sides prove themselves) and hands each the decision, the newest
# line on standard input; prints `report PLACE TEXT` for each that is new, and every few seconds for each that is not. Ends with its
# input. Arguments: port, number of machines. Follows listen_perl.pl; the same as take_reports_python.py, for hosts that have the one or
# the other.
my ($port, $machines) = @ARGV;
$SIG{PIPE} = $SIG{HUP} = 'IGNORE';    # the session's terminal goes before its last words are told
$| = 1;
open(my $file, '<', 'token') or die "token: $!\n";
chomp(my $token = <$file>);
$token =~ /^[0-9a-f]{32,64}\z/ or die "token: not what it should be\n";
open(my $random, '<:raw', '/dev/urandom') or die "/dev/urandom: $!\n";

my $listener = listen_on($port) || die "lost cannot listen on port $port: $!\n";

# Perl as Debian has it at the least does not come with Digest::SHA. Then this is SHA-256 (FIPS 180-4), at 1 ms a report.
my $has_digest = eval { require Digest::SHA };
my @primes = grep { my $n = $_; !grep { $n % $_ == 0 } 2 .. sqrt $n } 2 .. 311;
my @constants = map { int(2**32 * ($_**(1 / 3) - int($_**(1 / 3) + 1e-9))) } @primes;
my @beginning = map { int(2**32 * (sqrt($_) - int(sqrt $_))) } @primes[0 .. 7];

sub sha256 {
    my ($bytes) = @_;
    my @sum = @beginning;
    $bytes .= "\x80" . "\0" x ((55 - length $bytes) % 64) . pack 'Q>', 8 * length $bytes;
    for my $block (unpack '(a64)*', $bytes) {
        my @words = unpack 'N16', $block;
        for my $i (16 .. 63) {
            my ($one, $two) = map { $_ | $_ << 32 } @words[$i - 15, $i - 2];
            my $low = ($one >> 7 ^ $one >> 18 ^ $words[$i - 15] >> 3) & 0xffffffff;
            my $high = ($two >> 17 ^ $two >> 19 ^ $words[$i - 2] >> 10) & 0xffffffff;
            $words[$i] = $words[$i - 16] + $low + $words[$i - 7] + $high & 0xffffffff;
        }
        my ($a, $b, $c, $d, $e, $f, $g, $h) = @sum;
        for my $i (0 .. 63) {
            my ($one, $two) = ($e | $e << 32, $a | $a << 32);
            my $step = $h + (($one >> 6 ^ $one >> 11 ^ $one >> 25) & 0xffffffff) + ($e & $f ^ ~$e & $g) + $constants[$i] + $words[$i];
            my $turn = (($two >> 2 ^ $two >> 13 ^ $two >> 22) & 0xffffffff) + ($a & $b ^ $a & $c ^ $b & $c);
            ($a, $b, $c, $d, $e, $f, $g, $h) = ($step + $turn & 0xffffffff, $a, $b, $c, $d + $step & 0xffffffff, $e, $f, $g);
        }
        my @more = ($a, $b, $c, $d, $e, $f, $g, $h);
        $sum[$_] = $sum[$_] + $more[$_] & 0xffffffff for 0 .. 7;
    }
    return pack 'N8', @sum;
}

sub mac {
    my ($text) = @_;
    return Digest::SHA::hmac_sha256_hex($text, $token) if $has_digest;
    my $key = $token . "\0" x (64 - length $token);
    return unpack 'H*', sha256(($key ^ "\x5c" x 64) . sha256(($key ^ "\x36" x 64) . $text));
}

# Takes as long wherever the two differ: the sum of the bytes that do.
sub is_same { my ($one, $other) = @_; return unpack('%32C*', $one ^ $other) == 0; }

sub new_challenge {
    sysread($random, my $bytes, 16) == 16 or die "/dev/urandom: $!\n";
    return unpack 'H*', $bytes;
}

my ($decision, $unread, %said, %challenge) = ('0 run', '');
while (1) {
    my $ready = ears($listener, 0);
    select($ready, undef, undef, %guests ? 1 : undef) >= 0 or next;
    if (vec($ready, 0, 1)) {
        sysread(STDIN, my $new, 65536) or last;
        $unread .= $new;
        $decision = $1 while $unread =~ s/^([^\n]*)\n//;
    }
    for (hear($listener, $ready)) {
        my ($peer, $line) = @$_;
        next unless $line =~ /^([0-9a-f]{64}) (([1-9][0-9]{0,5}) ([0-9a-f]{32}) ([0-9a-f]{32}) ([ -~]+))\z/ && $3 < $machines;
        my ($text, $place, $challenge, $nonce, $report) = ($2, $3, $4, $5, $6);
        next unless is_same($1, mac("report $text"));
        my $is_taken = ($challenge{$place} //= new_challenge()) eq $challenge;
        $challenge{$place} = new_challenge() if $is_taken;
        my $answer = ($is_taken ? 'taken' : 'again') . " $challenge{$place} $decision";
        setsockopt($peer, SOL_SOCKET, SO_SNDBUF, 2 * length $answer) if length $answer > 8192;
        syswrite($peer, mac("decision $place $nonce $answer") . " $answer\n") && $is_taken or next;
        my $known = $said{$place} // ['', 0];
        if ($known->[0] ne $report || abs(time - $known->[1]) > 5) {
            $said{$place} = [$report, time];
            print "report $place $report\n";
        }
    }
}
system 'bash', './end_processes', $$ unless -e 'exit_code';    # the session was killed

# Takes the reports of a run's machines (report.sh) and hands each the decision, the newest line on standard input; prints
# `report PLACE TEXT` for each that is new, and every few seconds for each that is not. Ends with its input. Arguments: port,
# number of machines. Follows listen_perl.pl; the same as take_reports_python.py, for hosts that have the one or the other.
my ($port, $machines) = @ARGV;
$SIG{PIPE} = $SIG{HUP} = 'IGNORE';    # the session's terminal goes before its last words are told
$| = 1;
open(my $file, '<', 'token') or die "token: $!\n";
chomp(my $token = <$file>);

my $listener = listen_on($port) || die "lost cannot listen on port $port: $!\n";

my ($decision, $unread, %said) = ("0 run\n", '');
while (1) {
    my $ready = '';
    vec($ready, 0, 1) = 1;
    vec($ready, fileno($listener), 1) = 1;
    select($ready, undef, undef, undef);
    if (vec($ready, 0, 1)) {
        sysread(STDIN, my $new, 65536) or last;
        $unread .= $new;
        $decision = $1 while $unread =~ s/^([^\n]*\n)//;
    }
    if (vec($ready, fileno($listener), 1)) {
        accept(my $peer, $listener) or next;
        setsockopt($peer, SOL_SOCKET, SO_RCVTIMEO, pack('l!l!', 0, 500000));
        sysread($peer, my $line, 4096) or next;
        next unless $line =~ /^(\S+) (\d{1,9}) (.*)\n?$/ && $1 eq $token && $2 < $machines;
        my ($place, $text) = ($2, $3);
        syswrite($peer, $decision) or next;
        my $known = $said{$place} // ['', 0];
        if ($known->[0] ne $text || abs(time - $known->[1]) > 5) {
            $said{$place} = [$text, time];
            print "report $place $text\n";
        }
    }
}
system 'bash', './end_processes', $$ unless -e 'exit_code';    # the session was killed

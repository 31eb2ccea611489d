# Answers for a moment where rank 0 will listen (listen.sh). Standard input: the word of who may ask, and the word that is the answer.
# Arguments: port, address. Prints `listens`, or why it does not. Follows listen_perl.pl; the same as answer_python.py, for hosts that
# have the one or the other.
my ($port, $address) = @ARGV;
$SIG{PIPE} = 'IGNORE';
my ($question, $answer) = split ' ', <STDIN>;
my $listener = listen_on($port, $address) or die "$!\n";
$| = 1;
print "listens\n";
open(STDOUT, '>', '/dev/null');    # were it closed, the first guest would take its place, and Perl never closes that
while (1) {
    my $ready = ears($listener, fileno $listener);
    next if select($ready, undef, undef, %guests ? 1 : undef) < 0;
    for (hear($listener, $ready)) { syswrite($_->[0], "$answer\n") if $_->[1] eq $question; }
}

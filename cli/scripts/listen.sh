# shellcheck shell=bash disable=SC2154,SC2016
# Listens for a moment where rank 0 will, and hands each that connects the token; reach.sh tries it. Defined before:
# answer, address, port, token, seconds (after which the listener ends by itself).
with_perl='use Socket; $SIG{PIPE} = "IGNORE";
my ($address, $port, $token) = @ARGV;
my $six = $address =~ /:/;
my $listener;
socket($listener, $six ? AF_INET6 : AF_INET, SOCK_STREAM, 0) && setsockopt($listener, SOL_SOCKET, SO_REUSEADDR, 1)
  && bind($listener, $six ? pack_sockaddr_in6($port, Socket::IN6ADDR_ANY) : pack_sockaddr_in($port, INADDR_ANY))
  && listen($listener, 1024) or die "$!\n";
$| = 1; print "listens\n"; close STDOUT;
while (accept(my $peer, $listener)) { syswrite $peer, "$token\n"; close $peer; }'
with_python='import socket, sys
address, port, token = sys.argv[1:]
listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    listener.bind(("", int(port)))
except OSError as error:
    sys.exit(error.strerror)
listener.listen(1024)
print("listens", flush=True)
sys.stdout = None
while True:
    peer = listener.accept()[0]
    try:
        peer.sendall(token.encode() + b"\n")
    except OSError:
        pass
    peer.close()'
if command -v perl > /dev/null; then
  command=(perl -e "$with_perl")
elif command -v python3 > /dev/null; then
  command=(python3 -c "$with_python")
else
  answer no_tool yes
  exit
fi
# The interface that has the address: the route to oneself is lo.
answer interface "$(ip -o addr show 2> /dev/null | awk -v prefix="$address/" 'index($4, prefix) == 1 { print $2; exit }')"
said=$(mktemp)
timeout "$seconds" "${command[@]}" "$address" "$port" "$token" > "$said" 2>&1 < /dev/null &
listener=$!
disown
for ((try = 0; try < 100; try++)); do
  if [ -s "$said" ] || ! kill -0 "$listener" 2> /dev/null; then break; fi
  sleep 0.05
done
if grep -q '^listens$' "$said"; then
  answer listener "$listener"
else
  kill "$listener" 2> /dev/null
  answer fault "$(cat "$said")"
fi
rm -f "$said"

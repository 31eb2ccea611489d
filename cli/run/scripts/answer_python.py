# Answers for a moment where rank 0 will listen (listen.sh). Standard input: the word of who may ask, and the word that is the answer.
# Arguments: port, address. Prints `listens`, or why it does not. Follows listen_python.py; the same as answer_perl.pl, for hosts that
# have the one or the other.
import select, sys

question, answer = sys.stdin.readline().encode().split()
try:
    listener = listen_on(int(sys.argv[1]), sys.argv[2])
except OSError as error:
    sys.exit(error.strerror)
print("listens", flush=True)
sys.stdout = None
while True:
    ready, _, _ = select.select([listener, *guests], [], [], 1 if guests else None)
    for peer, line in hear(listener, ready):
        try:
            if line == question:
                peer.send(answer + b"\n")
        except OSError:
            pass
        peer.close()

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool forward` makes ports of a host, or of a run's machine, this machine's own: over libssh, over the ssh program and through a
# jump host, several at once and at the same time; it comes again after a lost connection, and Ctrl-C ends it.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3 --behind
keeps_connections
cat >page.py <<'END'
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = sys.argv[1].encode() * 300000
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *words): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Page).serve_forever()
END
expect_exit 0 dtool run --runs_on h1,h2 --extra_tag pages -- bash -c 'python3 page.py "$DTOOL_MACHINE_ID" 8123 & exec python3 page.py x 8124'

forwarding=
at_end '[[ -z $forwarding ]] || kill "$forwarding" 2>/dev/null || true'
begin() {  # flags...
  : >"$out"
  env --default-signal=INT "$DTOOL" forward "$@" >"$out" 2>"$err" </dev/null &
  forwarding=$!
  eventually 30 grep -q http://127 "$out" || fail "$(cat "$err")"
  mapfile -t urls < <(grep -o 'http://127.0.0.1:[0-9]*' "$out")
}
end() {
  local ended=0
  kill -INT "$forwarding"
  wait "$forwarding" || ended=$?
  expect_equal 130 "$ended"
  forwarding=
}
page() { curl --silent --max-time 20 --noproxy '*' "$1"; }
is_page() { [[ $(page "$1" | sha256sum) == "$(head -c "${3:-300000}" /dev/zero | tr '\0' "$2" | sha256sum)" ]]; }

# One machine of a run by its number, two ports, pages at the same time.
begin pages -m 1 8123 8124
expect_equal 2 "${#urls[@]}"
grep -q 'is port 8123 of machine1 of .*pages' "$out" || fail "$(cat "$out")"
eventually 20 is_page "${urls[0]}" 1
for each in 0 1 1 0; do is_page "${urls[each]}" "$(cut -c$((each + 1)) <<<1x)" & pages+=("$!"); done
for each in "${pages[@]}"; do wait "$each" || fail "a page is not whole: $(cat "$err")"; done
# Its connection is lost; the next page comes over another.
sudo_on h2 pkill -KILL -f 'sshd: (root|ann)@' || fail 'there is no connection'
eventually 20 is_page "${urls[0]}" 1
end

# A host, also over the ssh program; a port that nothing listens on is told once, and the others go on.
for program in libssh ssh; do
  begin h1 --ssh_program $program 8123 8199
  is_page "${urls[0]}" 0 || fail "over $program: $(cat "$err")"
  ! page "${urls[1]}" || fail 'a page came from a port that nothing listens on'
  ! page "${urls[1]}" || fail 'a page came from a port that nothing listens on'
  expect_equal 1 "$(grep -c 'h1 cannot reach 127.0.0.1 port 8199' "$err")"
  is_page "${urls[0]}" 0 || fail "after a failure: $(cat "$err")"
  end
done

# The browser is shown the first port, and may stay.
mkdir "$work/bin"
printf '#!/bin/sh\necho "$1" >%q\nexec sleep 3\n' "$work/shown" >"$work/bin/xdg-open"
chmod +x "$work/bin/xdg-open"
PATH=$work/bin:$PATH begin h1 --open 8123
eventually 10 test -s "$work/shown"
expect_equal "${urls[0]}" "$(cat "$work/shown")"
is_page "${urls[0]}" 0 || fail "beside a browser: $(cat "$err")"
end

# The port here may be chosen, and is refused if it is taken; a word that is no port, run or host is named.
begin h1 39123:8123
is_page http://127.0.0.1:39123 0 || fail "$(cat "$err")"
expect_exit 2 dtool forward h1 39123:8123
expect_error 'port 39123 of this machine cannot be used: Address already in use'
end
expect_exit 2 dtool forward h1 eighty
expect_error 'eighty is not a port'
expect_exit 2 dtool forward nosuch -m 1 80
expect_error 'no run nosuch is recorded'
expect_exit 2 dtool forward pages -m 7 80
expect_error '7'
expect_exit 2 dtool forward local 80
expect_error 'its port is here already: http://127.0.0.1:80'
expect_exit 1 dtool forward 'nosuch@h1' 80
expect_exit 0 dtool kill --all --yes --delete

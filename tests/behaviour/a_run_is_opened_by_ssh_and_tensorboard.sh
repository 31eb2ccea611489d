#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool ssh_config` prints a run's machines as hosts that OpenSSH's own programs reach, also behind a jump host. `dtool tensorboard` shows
# the TensorBoard of the run's environment here until Ctrl-C, and leaves nothing.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 3 --behind

# What stands in for TensorBoard says and does what the real one does.
for host in 1 2 3; do
  on "$host" /usr/bin/python3 -m venv --without-pip env
  cat >"$DTOOL_LAB_FOLDER/host$host/root/env/bin/tensorboard" <<'END'
#!/usr/bin/env python
import argparse, http.server, os, sys
words = argparse.ArgumentParser()
for name in ("--logdir", "--host", "--port"): words.add_argument(name)
words = words.parse_args()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{os.environ['DTOOL_MACHINE_ID']} {words.logdir} {os.path.realpath(words.logdir)}".encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer((words.host, int(words.port)), Page)
print(f"\nNOTE: Using experimental fast data loading logic.\nTensorBoard 2.15.1 at http://127.0.0.1:{server.server_port}/ (Press CTRL+C to quit)", file=sys.stderr, flush=True)
server.serve_forever()
END
  chmod 755 "$DTOOL_LAB_FOLDER/host$host/root/env/bin/tensorboard"
  theirs "$host" env
done
/usr/bin/python3 -m venv --without-pip "$HOME/env"
mkdir code
cd code
cat >train.sh <<'END'
mkdir -p "$DTOOL_OUTPUT_DIR/curves"
[ "$DTOOL_MACHINE_ID" = 0 ] || touch "$DTOOL_OUTPUT_DIR/curves/events.out.tfevents.1"
END
# shellcheck disable=SC2088
expect_exit 0 dtool run --follow --runs_on h1,h2,local --env_activate_path '~/env' -- bash train.sh
expect_exit 0 dtool list --json
id=$(json 'd["runs"][0]["run_id"]')

expect_exit 0 dtool ssh_config
expect_error "machine2 of $id is this machine"
cp "$out" hosts
expect_equal "Host $id.0
Host $id.1" "$(grep ^Host hosts)"
cat hosts "$HOME/.ssh/config" >config
for i in 0 1; do
  expect_exit 0 ssh -F config -o BatchMode=yes "$id.$i" hostname
  expect_output "^lab-.*-$((i + 1))\$"
done
expect_exit 0 scp -q -F config -o BatchMode=yes "$id.1:env/bin/tensorboard" copied
expect_file copied
expect_exit 0 dtool ssh_config "$id" --json
expect_equal "[('$id.0', 0, 'h1'), ('$id.1', 1, 'h2')]" "$(json '[(h["name"], h["machine"], h["host"]) for h in d["hosts"]]')"
expect_exit 2 dtool ssh_config no_such
expect_error "no run 'no_such' is recorded"

showing=
at_end '[[ -z $showing ]] || kill "$showing" 2>/dev/null || true'
show_board() {  # words...
  : >"$out"
  env --default-signal=INT "$DTOOL" tensorboard "$@" >"$out" 2>"$err" </dev/null &
  showing=$!
  eventually 30 grep -q 'http://127' "$out" || fail "$(cat "$err")"
  page=$(curl --silent --max-time 20 --noproxy '*' "$(grep -o 'http://127.0.0.1:[0-9]*' "$out" | head -n 1)")
}
boards() { pgrep -f 'bin/tensorboar[d] --logdir' || true; }
no_board_is_left() { [[ -z $(boards) ]]; }
end() {
  kill -INT "$showing"
  expect_ended 130 "$showing"
  showing=
  eventually 10 no_board_is_left
  expect_equal '' "$(pgrep -f "$DTOOL forward" || true)"
}
# Where the outputs have no events, all of the run's folder is shown.
show_board last -m 0
expect_equal "0 . /root/.dtool/runs/$id/tree" "$page"
end
show_board "$id" -m h2
expect_equal "1 /root/code/experiment_output/$id /root/code/experiment_output/$id" "$page"
end
show_board last -m 0 --logdir /tmp
expect_equal "0 /tmp /tmp" "$page"
# It ends by itself, and that is told.
on h1 pkill -f 'bin/tensorboar[d] --logdir'
expect_ended 1 "$showing"
showing=
expect_error "TensorBoard on machine0 of $id"

on h1 rm env/bin/tensorboard
expect_exit 1 dtool tensorboard last
expect_error 'there is no tensorboard'
expect_error 'hint: pip install tensorboard there'

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a host lacks is named before anything is sent or started, with the host's own package manager: programs, and a bash that
# is too old, and a file system without locks. busybox's programs are enough, though many have fewer options.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program busybox
"$here/../lab.d/make_root" busybox "$work/busybox"
as_root
lab 3 --root "1=$work/busybox"
mkdir tree
cd tree
touch file

# What is named, and that nothing is left there.
expect_exit 0 dtool check --runs_on h1,h2 --no_trainer
expect_output '! no usable rsync: dtool fetch and dtool copy --from need it +h1$'
expect_output "hint: on Debian: dtool command --command 'sudo apt-get install -y .*rsync' --runs_on h1$"
expect_output '! neither screen nor tmux is there: .* +h1$'
expect_equal '' "$(on 1 find .dtool/runs .lock_trial* 2>/dev/null || true)"

# What only environments and launchers' scripts use is needed with those alone.
echo true >set_up.sh
fault hide h2 awk
fault hide h2 tail
expect_exit 2 dtool run --runs_on h2 --no_sync --code_path /root --env_activate_path /root/activate -- true
expect_error '^  h2: awk, tail is not there'
expect_error '^nothing was started'
expect_equal '' "$(on 2 ls .dtool/runs 2>/dev/null || true)"
expect_exit 0 dtool config --runs_on h1,h2 --config_script set_up.sh --follow

# busybox runs all the rest of a run, and code goes there without rsync.
echo 'the code' >file
expect_exit 0 dtool run --runs_on h2,h1 --follow -- sh -c 'echo "rank $RANK: $(cat file)"'
expect_output 'rank 1: the code'
expect_exit 0 dtool kill --all
fault unhide h2 awk
fault unhide h2 tail

# Its own package manager.
# shellcheck disable=SC2016
on 1 sh -c 'echo ID=alpine >/etc/os-release; printf "#!/bin/sh\n" >/bin/apk; chmod +x /bin/apk'
expect_exit 0 dtool check --runs_on h1 --no_trainer
expect_output "hint: .*on Alpine: dtool command --command 'sudo apk add .*rsync' --runs_on h1$"

# A bash that is too old for the scripts: DTOOL_OLD_BASH, else this machine's, whose version is written over.
if [[ -z ${DTOOL_OLD_BASH:-} ]]; then
  DTOOL_OLD_BASH=$work/old_bash
  /usr/bin/python3 - "$(readlink -f /bin/bash)" "${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}" "$DTOOL_OLD_BASH" <<'END'
import os, sys
program, version = open(sys.argv[1], "rb").read(), b"\0" + sys.argv[2].encode() + b"\0"
assert program.count(version) == 1 and len(version) == 5
open(sys.argv[3], "wb").write(program.replace(version, b"\x004.2\0"))
os.chmod(sys.argv[3], 0o755)
END
fi
mkdir -p "$DTOOL_LAB_FOLDER/host3/root/bin"
# shellcheck disable=SC2016
echo 'PATH=/root/bin:$PATH' >"$DTOOL_LAB_FOLDER/host3/root/.bashrc"
cp "$DTOOL_OLD_BASH" "$DTOOL_LAB_FOLDER/host3/root/bin/bash"
version=$("$DTOOL_OLD_BASH" -c 'echo "$BASH_VERSION"')
for words in 'check --no_trainer' 'run -- true' 'config --config_script set_up.sh'; do
  # shellcheck disable=SC2086
  run dtool ${words/ / --runs_on h3 }
  [[ $code != 0 ]] || fail "dtool $words took bash $version"
  grep -Fq "bash $version is too old: dtool needs 4.4 or later" "$out" "$err" || fail "dtool $words does not name bash $version"
done

# A file system without locks: the kernel refuses flock to dtool-host there.
cat >"$DTOOL_LAB_FOLDER/host2/root/unlocked.py" <<'END'
#!/usr/bin/python3
import ctypes, os, struct, sys
number = {"x86_64": 73, "aarch64": 32}[os.uname().machine]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | 37), (0x06, 0, 0, 0x7FFF0000)]  # ENOLCK, or allowed
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
prctl = ctypes.CDLL(None, use_errno=True).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program) == 0, ctypes.get_errno()
os.execv(os.path.abspath(__file__) + ".real", sys.argv)
END
# shellcheck disable=SC2016
on 2 sh -c 'chmod +x unlocked.py; for each in .dtool/host/*/dtool-host; do mv $each $each.real; cp unlocked.py $each; done'
expect_exit 1 dtool check --runs_on h2 --no_trainer
expect_output 'x .*files cannot be locked in /root/.dtool: No locks available$'
expect_output 'hint: its file system has no flock'
expect_exit 2 dtool run --runs_on h2 -- true
expect_error '^  h2: files cannot be locked in /root/.dtool: No locks available$'
expect_error '^nothing was started'

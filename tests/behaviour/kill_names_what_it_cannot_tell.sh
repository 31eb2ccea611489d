#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What may be a run's and cannot be told to be is named by `dtool kill`: a process that hides its environment from its own user, a job of `at`
# that has not begun, and what docker and podman have begun since.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program setpriv
needs_file /usr/bin/python3
tag=417204$$
at_end 'pkill -KILL -f "(hide|shim).py $tag"'

# ---- a process that its user may not look into, whose parent and session are gone
cat >hide.py <<'END'
import ctypes, os, time
for step in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
time.sleep(300)
END
chmod 755 "$work"
mkdir -m 777 "$work/nobody" "$work/nobody/code"
cp hide.py "$work/nobody/code"
cd "$work/nobody/code"
# This user may not log in, and screen wants one who may.
sed "s,^nobody:.*,nobody:x:65534:65534:nobody:$work/nobody:/bin/bash," /etc/passwd >"$work/passwd"
cat >"$work/as_nobody" <<END
#!/bin/bash
mount --bind "$work/passwd" /etc/passwd
HOME=$work/nobody exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "\$@"
END
chmod 755 "$work/as_nobody"
as_nobody=(unshare --mount "$work/as_nobody")
expect_exit 0 "${as_nobody[@]}" "$DTOOL" run --json --runs_on local --code_path "$work/nobody/there" -- bash -c "/usr/bin/python3 hide.py $tag; sleep 0.3"
run_id=$(json 'd["run_id"]')
hidden() { pgrep -f "hide.py $tag"; }
eventually 20 hidden
is_alone() { [[ $(ps -o ppid= -p "$(hidden)" | xargs) == 1 ]]; }
eventually 20 is_alone
ended() { "${as_nobody[@]}" "$DTOOL" status "$run_id" | grep -q 'ended'; }
eventually 20 ended
expect_exit 0 "${as_nobody[@]}" "$DTOOL" kill --yes --delete "$run_id"
expect_error "process $(hidden) \(.*hide.py $tag\) began after the run and hides its environment; whether the run had them started cannot be told"
expect_error "no process is left that is known to be the run's"
eventually 5 hidden

# ---- at, docker and podman
cd "$work/here"
as_root
lab 1
connects_anew
root=$DTOOL_LAB_FOLDER/host1/root
echo 'PATH=/root/bin:$PATH; export DOCKER_HOST=unix:///root/docker.sock' >"$root/.bashrc"
mkdir "$root/bin"
on 1 touch docker.sock
touch code
expect_exit 0 dtool run --json --runs_on h1 -- sleep "$tag"
run_id=$(json 'd["run_id"]')
printf '#!/bin/sh\nprintf "7\\tMon Nov 23 12:00:00 2026 a root\\n8\\tMon Nov 23 12:00:00 2026 a root\\n"\n' >"$root/bin/atq"
printf '#!/bin/sh\n[ "$2" != 7 ] || echo "DTOOL_RUN_ID=%s; export DTOOL_RUN_ID"\n[ "$2" != 8 ] || echo "DTOOL_RUN_ID=other; export DTOOL_RUN_ID"\n' "$run_id" >"$root/bin/at"
chmod 755 "$root/bin/at" "$root/bin/atq"
cat >"$root/shim.py" <<'END'
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, sys.argv[2].encode(), 0, 0, 0)  # PR_SET_NAME
if os.fork() == 0:
    os.execvpe("sleep", ["sleep", sys.argv[3]], {"PATH": os.defpath})  # a container has an environment of its own
time.sleep(300)
END
begin_container() {
  on 1 env -i "${@:3}" /usr/bin/python3 /root/shim.py "$tag" "$1" "$2" || true &
  at_end "kill $! 2> /dev/null"
  eventually 10 on 1 pgrep -f "^sleep $2\$"
}
begin_container containerd-shim 300
begin_container conmon 301
begin_container conmon 302 DTOOL_RUN_ID=another
# Another user may call a process as he likes.
chmod 755 "$root"
begin_container containerd-shim 303 setpriv --reuid 65534 --clear-groups
expect_exit 0 dtool kill --yes --delete --grace 1 "$run_id"
expect_error 'at has job 7 of the run, which has not begun'
expect_no_error 'job 8'
expect_error 'containerd-shim .*has 1 process that began after the run: [0-9]+ sleep 300'
expect_error 'conmon .*has 1 process that began after the run: [0-9]+ sleep 301'
expect_no_error 'sleep 30[23]'
expect_error "no process is left that is known to be the run's"

# ---- a daemon that bears nothing of the run but its folder and its log: a person's program may look the same
expect_exit 0 dtool run --json --runs_on h1 -- bash -c "(env -i setsid bash -c 'setsid sleep $tag.9 &' &); sleep 300"
run_id=$(json 'd["run_id"]')
eventually 10 on 1 pgrep -f "^sleep $tag.9\$"
expect_exit 0 dtool kill --yes --delete --grace 1 "$run_id"
expect_error "1 process without the run's id in the run's folder, or with the run's log as output: [0-9]+ sleep $tag.9; whether"
expect_error "no process is left that is known to be the run's"
on 1 pkill -f "^sleep $tag.9\$"

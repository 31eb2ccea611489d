#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The disk of a host is full while the code is sent, while the run is started or recorded, while its program logs and while the trainer writes a
# checkpoint: each time the host and the disk are named, nothing half stands under a whole file's name, the exit code is told although
# there is no room for it, and an old checkpoint is kept and resumed from when there is room again.
source "$(dirname "$0")/harness.sh"
needs_isolation
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'dtool-trainer is not built'
lab 2
tag=475869$$  # tells its processes from those of other labs on this machine
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
disk() { on "$1" mkdir -p "$2" && disk_on "$1" "size=$3" "$2"; }
fill() { on "$1" sh -c "cat /dev/zero >$2/fill 2>/dev/null || true"; }
killfiles() { ls "$HOME/.dtool/killfiles" 2>/dev/null || true; }

# Sending.
for i in $(seq 20); do head -c 100000 /dev/urandom >"file$i"; done
disk h2 /root/here 1m
expect_exit 2 dtool run --runs_on "$DTOOL_LAB_HOSTS" -- true
expect_error "^  ${address[1]}: .*/root/.*No space left on device"
expect_error 'hint: free some space there'
expect_error 'nothing was started'
expect_equal '' "$(on h2 find here -maxdepth 1 -name 'file*')"
expect_equal '' "$(killfiles)"
sudo_on h2 umount /root/here
expect_exit 0 dtool run --follow --runs_on "$DTOOL_LAB_HOSTS" -- sha256sum file1 file20
expect_equal 4 "$(grep -cF -f <(sha256sum file1 file20) "$out")"
expect_exit 0 dtool kill --all --yes --delete
rm file*

# Starting: the others are ended again.
disk h2 /root/.dtool 1m
fill h2 /root/.dtool
expect_exit 1 dtool run --no_sync --runs_on "$DTOOL_LAB_HOSTS" -- sleep "$tag"
expect_error "^  ${address[1]}: cannot write into .*: is the disk full\?"
expect_error 'no process of the run is left'
expect_equal '' "$(killfiles)"
expect_equal '' "$(pgrep -fx "sleep $tag" || true)"
on h2 rm .dtool/fill

# Recording, on this machine: what is not recorded is not started.
# shellcheck disable=SC2016
full_here='mount -t tmpfs -o size=4k none "$HOME/.dtool/killfiles" && { cat /dev/zero >"$HOME/.dtool/killfiles/fill" 2>/dev/null; exec "$0" "$@"; }'
expect_exit 2 unshare --mount bash -c "$full_here" "$DTOOL" run --no_sync --runs_on "$DTOOL_LAB_HOSTS" -- sleep "$tag"
expect_error 'killfile: cannot be written: No space left on device'
expect_equal 'nothing was started, since it could not be recorded' "$(tail -n 1 "$err")"
expect_equal '' "$(on h1 ls .dtool/runs)"
expect_equal '' "$(pgrep -fx "sleep $tag" || true)"

# Logging, with the run's state on the same disk: what had been written is shown, and the end is recorded.
# shellcheck disable=SC2016
expect_exit 1 timeout 60 "$DTOOL" run --follow --no_sync --runs_on "$DTOOL_LAB_HOSTS" --output_dir /root/.dtool/out -- \
  bash -c 'for ((i = 0; i < 30000; i++)); do echo "line $i of a log that is in need of room on the disk" || exit 5; done'
expect_error "^  ${address[1]}: exit code 5"
expect_error '^dtool: the cause: rank 1 on machine 1 .* ended with exit code 5: line .* \(its disk at /root/.dtool is full\)$'
expect_equal "$(on h2 sh -c 'cat .dtool/out/*/machine1.log')" "$(sed -n 's/^machine1: //p' "$out")"
expect_equal 30000 "$(grep -c '^machine0: line' "$out")"
expect_exit 1 dtool status
expect_output "^cause: rank 1 on machine 1 \(${address[1]}\) ended with exit code 5: line .* \(its disk at /root/.dtool is full\)$"
expect_output '^1 .* exited 5 +the disk at /root/.dtool is full; line '
expect_exit 1 dtool status --json
expect_equal 'None /root/.dtool' "$(json '" ".join(str(m.get("full_disk")) for m in d["machines"])')"
expect_exit 0 dtool kill --all --yes --delete
sudo_on h2 umount /root/.dtool

# Writing a checkpoint: there is room for two and a half.
disk h1 /root/out 1200k
expect_exit 1 timeout 100 "$DTOOL" run digits --follow --seed 3 --runs_on "$DTOOL_LAB_HOSTS" --output_dir /root/out
expect_error 'the cause: rank 0 on machine 0 .* cannot write /root/out/.*: No space left on device'
expect_exit 1 dtool status
expect_output '^cause: rank 0 on machine 0 .*: No space left on device'
run_id=$(basename "$HOME"/.dtool/killfiles/*.killfile .killfile)
expect_equal '' "$(on h1 find /root/out -name '*.partial')"
kept=$(on h1 sh -c 'ls out/*/checkpoints')
[[ $kept == *step_*.safetensors* ]] || fail "no checkpoint is kept: $kept"
sudo_on h1 mount -o remount,size=20m /root/out
expect_exit 0 on h1 "$DTOOL_TRAINER" "/root/.dtool/runs/$run_id/machine0/experiment.toml" --seed 3 --output_dir "/root/out/$run_id" --checkpoint latest
expect_output 'test accuracy 0\.9'
expect_exit 0 dtool kill --all --yes --delete

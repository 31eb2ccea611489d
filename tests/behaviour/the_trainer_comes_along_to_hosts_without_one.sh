#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A host without LibTorch and without dtool-trainer is sent the launcher's, with its libraries: once, whole, and where it can run.
# shellcheck disable=SC2153
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program mmdebstrap
[[ -x ${DTOOL_TRAINER:-} ]] || skip 'no dtool-trainer was built'
system_root trixie
lab 2 --root "$REPLY" --private_tmp  # a trainer below /tmp would be seen there
both=h1,h2
train() { expect_exit "$1" dtool run digits --runs_on "$both" --config_kwargs '{"train":{"epochs":1}}' --follow "${@:2}"; }
bundle_on() { on "$1" sh -c 'cd /root/.dtool/trainers 2>/dev/null && ls -d ????????????????????????????????????????????????????????????????' || true; }

# What would be done, and that it may be refused.
expect_exit 0 dtool check --runs_on "$both"
expect_output '^trainer +none; dtool run sends it \([0-9]+ MB\)$'
train 2 --no_trainer_bundle
expect_error 'dtool-trainer is not there'
expect_equal '' "$(bundle_on h1)"

train 0
expect_output '2 ranks on 2 machines'
hash=$(bundle_on h1)
expect_equal 64 "${#hash}"
expect_equal "$hash" "$(bundle_on h2)"
[[ $(on h1 sh -c "ls /root/.dtool/trainers/$hash/lib") == *libc10.so* ]] || fail 'no LibTorch came along'
on h1 sh -c "! ls /root/.dtool/trainers/$hash/lib | grep -E '^(libc|libm|ld-linux[^ ]*)\.so'" || fail 'libc came along'

# The second time nothing is sent, and a bundle of which something is gone is made whole.
library=$(on h1 sh -c "ls /root/.dtool/trainers/$hash/lib/libc10.so*")
written=$(on h1 stat -c '%i %Z' "$library")
train 0
expect_no_error 'sending the trainer'
expect_equal "$written" "$(on h1 stat -c '%i %Z' "$library")"
on h2 rm "$library"
expect_exit 0 dtool install --runs_on "$both"
expect_output "^h1  there already: /root/.dtool/trainers/$hash/dtool-trainer\$"
expect_output "^h2  sent: /root/.dtool/trainers/$hash/dtool-trainer\$"
on h2 test -e "$library"

# A host whose libc is too old, or no glibc, is told before anything is sent.
on h2 rm -r /root/.dtool/trainers
mkdir -p "$DTOOL_LAB_FOLDER/host2/root/bin"
printf '#!/bin/sh\necho glibc 2.17\n' >"$DTOOL_LAB_FOLDER/host2/root/bin/getconf"
chmod +x "$DTOOL_LAB_FOLDER/host2/root/bin/getconf"
# shellcheck disable=SC2016
echo 'PATH=/root/bin:$PATH' >"$DTOOL_LAB_FOLDER/host2/root/.bashrc"
train 2
expect_error 'dtool-trainer is not there; none can be sent: the trainer of this machine needs glibc 2\.[0-9]+ or later, and it has glibc 2\.17'
expect_error 'nothing was started'
expect_equal '' "$(bundle_on h2)"
expect_exit 1 dtool install --json --runs_on "$both"
expect_equal 'True False' "$(json '" ".join(str(h["failure"] == "none") for h in d["hosts"])')"
rm "$DTOOL_LAB_FOLDER/host2/root/.bashrc"

# This machine's copy is for its user alone, and is made whole again.
expect_equal 700 "$(stat -c %a ~/.dtool/trainers/"$hash")"
rm ~/.dtool/trainers/"$hash"/dtool-trainer
train 0
expect_file ~/.dtool/trainers/"$hash"/dtool-trainer

# A trainer of the host's own whose worker is gone is not taken for one that is fit.
on h2 sh -c 'mkdir -p /root/.dtool/bin && cp /root/.dtool/trainers/*/lib/dtool-trainer /root/.dtool/bin'
expect_exit 0 dtool install --runs_on h2
expect_output '^h2  there already: /root/.dtool/trainers/'
dtool kill --all --yes --delete >/dev/null 2>&1

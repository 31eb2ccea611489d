#!/usr/bin/env bash
# What a host's programs cannot do is named before anything is sent or started, with the host's own package manager: busybox's
# programs of the same names, a bash that is too old (DTOOL_OLD_BASH names one), a file system whose files cannot be locked.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program busybox
"$here/../lab.d/make_root" busybox "$work/busybox"
lab 3 --root "1=$work/busybox"
mkdir -p "$DTOOL_LAB_FOLDER/host3/root/bin"
# shellcheck disable=SC2016
echo 'PATH=/root/bin:$PATH' >"$DTOOL_LAB_FOLDER/host3/root/.bashrc"
own_program() { # NAME LINE
  printf '#!/bin/sh\n%s\n' "$2" >"$DTOOL_LAB_FOLDER/host3/root/bin/$1"
  chmod +x "$DTOOL_LAB_FOLDER/host3/root/bin/$1"
}
mkdir tree
cd tree
touch file

# What is named, and that nothing is left there.
expect_exit 1 dtool check --runs_on h1,h2 --no_trainer
expect_output 'x .*comm, cmp is not there +h1$|x .*comm.* is not there +h1$'
expect_output 'x tail does not know --pid, find does not know -printf, sed does not know -z.* +h1$'
expect_output "hint: .*sudo apt-get install -y .*coreutils.*--runs_on h1$"
expect_error '^dtool: 1 of 2 hosts lacks something for a run: h1$'
expect_equal '' "$(on 1 find .dtool .lock_trial* 2>/dev/null || true)"
expect_exit 2 dtool run --runs_on h2,h1 -- true
expect_error '^  h1: .*tail does not know --pid'
expect_error '^nothing was started'
expect_equal '' "$(on 2 ls .dtool/runs 2>/dev/null || true)"
echo true >set_up.sh
expect_exit 1 dtool config --runs_on h1,h2 --config_script set_up.sh --follow
expect_error '^  h1: .* is not there'
# Its own package manager.
# shellcheck disable=SC2016
on 1 sh -c 'echo ID=alpine >/etc/os-release; printf "#!/bin/sh\n" >/bin/apk; chmod +x /bin/apk'
expect_exit 1 dtool check --runs_on h1 --no_trainer
expect_output "hint: .*on Alpine: dtool command --command 'sudo apk add .*coreutils.*--runs_on h1$"

# A file system without locks.
own_program flock 'echo "flock: 9: Function not implemented" >&2; exit 71'
expect_exit 1 dtool check --runs_on h3 --no_trainer
expect_output 'x files cannot be locked in /root: Function not implemented$'
expect_output 'hint: its file system has no flock: '
expect_exit 2 dtool run --runs_on h3 -- true
expect_error '^  h3: cannot lock files in .*Function not implemented'
expect_equal '' "$(on 3 find . -name '.lock_trial*')"
rm "$DTOOL_LAB_FOLDER/host3/root/bin/flock"

# A bash that is too old for the scripts; any of another version is one that runs them.
if [[ -n ${DTOOL_OLD_BASH:-} ]]; then
  cp "$DTOOL_OLD_BASH" "$DTOOL_LAB_FOLDER/host3/root/bin/bash"
  version=$("$DTOOL_OLD_BASH" -c 'echo "$BASH_VERSION"')
  for words in 'check --no_trainer' 'run -- true' 'config --config_script set_up.sh'; do
    # shellcheck disable=SC2086
    run dtool ${words/ / --runs_on h3 }
    [[ $code != 0 ]] || fail "dtool $words took bash $version"
    grep -Fq "bash $version is too old: dtool needs 4.4 or later" "$out" "$err" || fail "dtool $words does not name bash $version"
  done
fi

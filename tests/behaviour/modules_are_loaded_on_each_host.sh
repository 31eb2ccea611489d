#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `--modules` loads what it names on every host, after a purge, before anything that an environment's script does; and a
# module that is missing or fails is found before anything starts.
# shellcheck disable=SC2088  # it is for the hosts to expand
source "$(dirname "$0")/harness.sh"
needs_file /usr/share/modules/init/bash
lab 2
hosts=$DTOOL_LAB_HOSTS

# Two versions of a library, and one that cannot be loaded.
for i in 1 2; do
  home=$DTOOL_LAB_FOLDER/host$i/root
  mkdir -p "$home/modules/blas" "$home/venv/bin"
  for version in 1.0 2.0; do
    printf '#%%Module\nsetenv BLAS_VERSION %s\nprepend-path PATH /opt/blas/%s/bin\n' "$version" "$version" >"$home/modules/blas/$version"
  done
  printf '#%%Module\nsetenv COMPILER gcc\n' >"$home/modules/gcc"
  printf '#%%Module\nerror {the licence server is away}\n' >"$home/modules/broken"
  # What a user's shell had loaded before does not count.
  printf 'export MODULEPATH=$HOME/modules LOADEDMODULES=blas/1.0 _LMFILES_=$HOME/modules/blas/1.0 BLAS_VERSION=1.0\n' >"$home/.bashrc"
  echo 'declare -x ACTIVATED_WITH=$BLAS_VERSION' >"$home/venv/bin/activate"
done

cat >tell.sh <<'S'
echo "blas $BLAS_VERSION, $COMPILER, activated with ${ACTIVATED_WITH:-nothing}, loaded $LOADEDMODULES"
case $PATH in /opt/blas/2.0/bin:*) echo 'its programs come first' ;; esac
S
expect_exit 0 dtool run --follow --runs_on "$hosts" --modules 'blas/2.0  gcc' --env_activate_path '~/venv' -- bash tell.sh
expect_equal 2 "$(grep -c 'blas 2.0, gcc, activated with 2.0, loaded blas/2.0:gcc$' "$out")"
expect_equal 2 "$(grep -c 'its programs come first' "$out")"

# From the configuration, and the flag wins.
printf '[run]\nmodules = "blas/1.0"\n' >dtool.toml
expect_exit 0 dtool trust --settings --yes
expect_exit 0 dtool run --follow --runs_on "$hosts" -- bash tell.sh
expect_output 'blas 1.0, , activated with nothing, loaded blas/1.0$'
expect_exit 0 dtool run --follow --runs_on "$hosts" --modules gcc -- bash tell.sh
expect_output 'blas , gcc, activated with nothing, loaded gcc$'
rm dtool.toml

# starts_nothing ARGS...: no process, no record.
starts_nothing() {
  expect_exit 2 dtool run --runs_on "$hosts" "$@" -- sleep 1000
  expect_error '^nothing was started$'
  expect_equal "$recorded" "$(ls ~/.dtool/killfiles)"
}
recorded=$(ls ~/.dtool/killfiles)
starts_nothing --modules 'gcc blas/3.0'
expect_error "--modules: module load blas/3.0 failed: .*blas/3.0"
expect_error 'hint: there is blas/1.0, blas/2.0$'
starts_nothing --modules gc
expect_error 'hint: did you mean gcc\?$'
rm "$DTOOL_LAB_FOLDER/host2/root/modules/blas/2.0"
starts_nothing --modules blas/2.0
expect_error '^dtool: 1 of 2 hosts failed'
expect_error 'hint: there is blas/1.0$'
starts_nothing --modules broken
expect_error 'module load broken failed: .*the licence server is away'
expect_no_error 'hint: there is broken'
expect_exit 1 dtool check --runs_on "$hosts" --no_trainer --modules blas/2.0
expect_output '^modules +blas/2.0  '
expect_output '^ +x --modules: module load blas/2.0 failed'

# A host without environment modules.
if [[ $DTOOL_LAB_MODE == isolated ]]; then
  for path in /etc/profile.d/modules.sh /usr/share/modules/init/bash; do sudo_on h2 mount --bind /dev/null "$path"; done
  starts_nothing --modules gcc
  expect_error 'the command module is not there$'
  expect_error 'apt-get install -y environment-modules'
fi

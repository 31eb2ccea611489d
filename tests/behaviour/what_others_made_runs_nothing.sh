#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What somebody else made runs nothing as the user and takes no other file along: a cloned repository's folders and index, a
# killfile that was handed on, a folder that was there first, files that are none.
# shellcheck disable=SC2088  # it is for the host to expand
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program git
as_root
lab 1 --private_tmp
connects_anew
expect_nothing_was_run() { expect_no_file "$work/owned"; }

# A folder of a cloned repository is a repository, which says by which program git is to fetch what it lacks.
mkdir -p up/inner/objects/info up/inner/refs/heads
(
  cd up/inner
  echo 'ref: refs/heads/main' >HEAD
  echo 1111111111111111111111111111111111111111 >refs/heads/main
  echo >objects/info/packs
  echo true >train.sh
  printf '[core]\nrepositoryformatversion = 1\nbare = false\nworktree = .\n[extensions]\npartialClone = origin\n[remote "origin"]\nurl = /nowhere\npromisor = true\nuploadpack = "touch %s; false"\n' \
    "$work/owned" >config
  cd ..
  git init -q .
  git -c user.email=a@b -c user.name=a add -A
  git -c user.email=a@b -c user.name=a commit -qm 1
)
git clone -q up mine
for folder in mine/inner mine; do
  run env --chdir "$folder" "$DTOOL" run --runs_on h1 --follow -- true
  expect_nothing_was_run
done
# The same in a checkout's own configuration, which a shared folder or an archive brings along.
cp up/inner/config mine/.git/config
run env --chdir mine "$DTOOL" run --runs_on h1 --follow -- true
expect_nothing_was_run

# The edits of a checkout are read for the run's record: its configuration names another folder, whose files git would show, and
# a program that compares files, for git in a repository inside.
mkdir -p up3/repo up3/inner/sub up3/inner/.ssh
echo 'the key of another folder' >up3/inner/.ssh/id_rsa
(
  cd up3/inner/sub
  git init -q .
  git -c user.email=a@b -c user.name=a commit -q --allow-empty -m 1
  git config diff.external "touch $work/owned; false"
  echo x >new
  git add new
  cd ../../repo
  git init -q .
  mkdir .ssh
  echo dummy >.ssh/id_rsa
  echo true >train.sh
  git add -A
  git update-index --add --cacheinfo "160000,$(git -C ../inner/sub rev-parse HEAD),sub"
  git -c user.email=a@b -c user.name=a commit -qm 1
  rm -r .ssh
  git config core.worktree ../../inner
  git config diff.submodule diff
  git config submodule.sub.ignore none
  git -C ../inner/sub -c user.email=a@b -c user.name=a commit -qm 2
)
run env --chdir up3/repo "$DTOOL" run --runs_on h1 --follow -- true
expect_nothing_was_run
! grep -rqs 'the key of another folder' "$HOME/.dtool/records" "$DTOOL_LAB_FOLDER/host1/root" || fail 'a file of another folder was recorded'
! "$DTOOL" show --patch 2>/dev/null | grep 'the key of another folder' || fail 'a file of another folder is in the edits'

# An index that names a file outside of the tree.
mkdir -p up2/secret
echo 'a private key' >up2/secret/id_rsa
git init -q up2/repo
mkdir -p up2/repo/zz/secret
echo x >up2/repo/zz/secret/id_rsa
git -C up2/repo add -A
/usr/bin/python3 - up2/repo/.git/index <<'PYTHON'
import hashlib, sys
index = open(sys.argv[1], "rb").read()[:-20].replace(b"zz/secret/id_rsa", b"../secret/id_rsa")
open(sys.argv[1], "wb").write(index + hashlib.sha1(index).digest())
PYTHON
expect_exit 2 env --chdir up2/repo "$DTOOL" run --runs_on h1 -- true
expect_error "git names the file '../secret/id_rsa', which is not in the folder"
! grep -rqs 'a private key' "$DTOOL_LAB_FOLDER/host1/root" || fail 'a file outside of the tree was sent'

# A killfile from somebody else.
mkdir state
echo "touch $work/owned" >state/end
cat >other.killfile <<KILLFILE
format = 1
run_id = "innocent"
kind = "run"
created = "2026-11-21T03:45:12Z"
launcher = "ann@desk"
what = "mnist"
command_line = ["dtool"]
distributed_ip_and_port = ""
nproc_per_node = 1
code_path = "~/code"
ssh_config_file = ""
ssh_settings = []
machine_count = 1

[[machine]]
id = 0
host = "local"
session = ""
state_folder = "$PWD/state"
log = "~/x.log"
output_folder = "~/x"
KILLFILE
expect_exit 2 dtool kill --screen_ids_file other.killfile
expect_error "state_folder.* '$PWD/state' is not ~/.dtool/runs/innocent/machine0"
expect_nothing_was_run

# It decides neither whose key the host has to show nor what runs here, wherever it lies: here its known_hosts know the host, and
# the user's do not.
cp "$HOME/.ssh/known_hosts" theirs
sed -i -e 's|^host = .*|host = "h1"|' -e 's|^state_folder = .*|state_folder = "~/.dtool/runs/innocent/machine0"|' \
  -e "s|^ssh_settings = .*|ssh_settings = [\"UserKnownHostsFile=$PWD/theirs\", \"ProxyCommand=touch $work/owned\", \"DtoolProgram=ssh\"]|" other.killfile
mv "$HOME/.ssh/known_hosts" mine_known
mkdir -p "$HOME/.dtool/killfiles"
cp other.killfile "$HOME/.dtool/killfiles/innocent.killfile"
for command in 'kill --screen_ids_file other.killfile --ssh_program auto' 'kill innocent' 'status innocent' 'logs innocent'; do
  # shellcheck disable=SC2086
  expect_exit 1 dtool $command
  grep -q 'the host key is not in .*/.ssh/known_hosts' "$out" "$err" || fail "$command trusts a host key"
  expect_error 'has SSH settings that were not chosen on this machine'
  expect_nothing_was_run
done
mv mine_known "$HOME/.ssh/known_hosts"
rm "$HOME/.dtool/killfiles/innocent.killfile"

# Who made the code folder first could put other code there; a group's folder, and the user's own, are used.
as_nobody() { sudo_on 1 setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$@"; }
on 1 chmod 1777 /tmp
mkdir code
cd code
echo true >p.sh
as_nobody mkdir -m 777 /tmp/mine /tmp/theirs
on 1 mkdir /tmp/theirs/mine /tmp/own /root/group
on 1 chown 65534 /root/group
for folder in /tmp/mine /tmp/theirs/mine; do
  expect_exit 2 dtool run --runs_on h1 --code_path "$folder" --follow -- bash p.sh
  expect_error 'the folder /tmp/[a-z]* belongs to nobody, who could put other code there'
done
for folder in /tmp/own/code '~/group'; do
  expect_exit 0 dtool run --runs_on h1 --code_path "$folder" --follow -- bash p.sh
done
# The same of a folder that another user's link leads to, of a folder deeper down where all may write, and of outputs.
as_nobody ln -s /root/group /tmp/link
on 1 mkdir -m 777 /root/open
on 1 chmod 755 /root
as_nobody mkdir -m 777 /root/open/theirs
for options in '--code_path /tmp/link' '--code_path /root/open/theirs/code' '--output_dir /tmp/mine' '--output_dir /tmp/link/x' '--output_dir /root/open/theirs'; do
  # shellcheck disable=SC2086  # a flag and its value
  expect_exit 2 dtool run --runs_on h1 $options --follow -- bash p.sh
  expect_error 'the folder /[a-z/]* belongs to nobody, who could (put other code|change the outputs) there'
  expect_error '^ *hint: name a folder of your own'
done
on 1 chmod 700 /root
expect_exit 0 dtool run --runs_on h1 --output_dir /tmp/own/outputs --follow -- bash p.sh

# Data may be in somebody else's folder, who is told; but what somebody else put there is not taken for it.
mkdir ../set
echo good >../set/file
as_nobody mkdir -m 777 /tmp/set
expect_exit 0 dtool run --runs_on h1 --data ../set:/tmp/set --follow -- cat /tmp/set/file
expect_error '/tmp/set belongs to nobody, who can change what is there'
as_nobody sh -c 'cd /tmp/set && echo evil >new && touch -r file new && mv -f new file'
expect_exit 2 dtool run --runs_on h1 --data ../set:/tmp/set --follow -- cat /tmp/set/file
expect_error '/tmp/set/file is not as dtool copied it, and differs'
expect_exit 0 dtool run --force --runs_on h1 --data ../set:/tmp/set --follow -- cat /tmp/set/file
expect_output ': good$'
expect_exit 0 dtool copy --runs_on h1 ../set/ /tmp/set
expect_error 'all was there already'

# What would never end is not read: a link in a repository, known_hosts that are a pipe, a host that does not stop talking.
ln -s /dev/zero dtool.toml
expect_exit 2 dtool command --runs_on h1 --command true
expect_error 'dtool.toml: is no regular file'
rm dtool.toml
mkfifo "$work/known"
expect_exit 1 dtool command --ssh_cmd "ssh -o GlobalKnownHostsFile=$work/known" --runs_on h1 --command true </dev/null
expect_error "$work/known cannot be read, and may be about the host"
expect_exit 1 dtool trust --yes --ssh_cmd "ssh -o UserKnownHostsFile=$work/known" --runs_on h1
expect_exit 1 dtool command --json --runs_on h1 --command 'cat /dev/zero'
expect_output 'it wrote more than 256 MB'
expect_equal too_much_output "$(json 'd["hosts"][0]["failure"]')"

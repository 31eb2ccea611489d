#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Flags, host lists and files that cannot be right end with 2, a message that names them and what was meant; no host is contacted.
source "$(dirname "$0")/harness.sh"
lab 1

fault restart-sshd h1 -o LogLevel=VERBOSE
host=$DTOOL_LAB_HOSTS

# $1: what the message must have; the rest: dtool's words.
refused() {
  local pattern=$1
  shift
  expect_exit 2 timeout 20 "$DTOOL" "$@"
  expect_error "$pattern"
  expect_error '^dtool: [^A-Z]*'
  expect_equal '' "$(cat "$out")"
}
refuses_hosts() { refused "$1" command --command 'touch started' --runs_on "$2"; }

# Host lists.
refuses_hosts '^dtool: --runs_on: the value is empty$' ''
refuses_hosts 'list of hosts is empty' ' '
refuses_hosts "'$host,,h2' has an empty element" "$host,,h2"
refuses_hosts 'empty element' ",$host"
refuses_hosts "'n\[1-': '\[' has no partner" "$host,n[1-"
refuses_hosts "'n\[1-\]': '1-' is neither a number nor a range" "$host,n[1-]"
refuses_hosts "'\]' has no partner" "$host,n1]"
refuses_hosts "runs backwards" "$host,n[8-1]"
refuses_hosts "is neither a number nor a range" "$host,n[a-b]"
refuses_hosts "'n\[1-1000000\]': it names more than [0-9]+ hosts" "$host,n[1-1000000]"
refuses_hosts "more than [0-9]+ hosts" "$host,n[1-1000][1-1000]"
refuses_hosts 'more than 18 digits' 'n[1-99999999999999999999]'
refuses_hosts "host '$host' is named twice" "$host,h2,$host"
refuses_hosts "host 'n2' is named twice" "$host,n[1-3],n2"
refuses_hosts "host 'local' is named twice" "local,$host,local"
for port in 0 65536 -1 abc '' 99999999999; do
  refuses_hosts "port '$port' is not a number from 1 to 65535" "$host,h2:$port"
done
refuses_hosts "'ann@' is not a host: the host name is empty" "$host,ann@"
refuses_hosts "group name after '@' is empty" "$host,@"
refuses_hosts "does not begin with '-'" "$host,-oProxyCommand=x"
refuses_hosts "does not hold ';'" "$host;touch x"
refuses_hosts "does not hold ' '" "$host h2"
expect_error 'hint: hosts are joined by commas'
refuses_hosts 'no group @gpus' "$host,@gpus"
refuses_hosts "'local' is this machine" 'ann@local'
printf 'runs_on = "@gpus"\n[groups]\ngpu = "h[1-2]"\ncpu = "@more"\nmore = "@cpu"\n' >dtool.toml
expect_exit 0 dtool trust --settings --yes
refused 'no group @gpus' command
expect_error 'hint: .*gpu'
refuses_hosts 'holds itself' '@cpu'
rm dtool.toml

# Hostfiles.
refused "hostfile .*no_such_file.*No such file" command --hostfile no_such_file
refused '--hostfile.*--runs_on|--runs_on.*--hostfile' command --runs_on "$host" --hostfile no_such_file
printf '# none\n' >hosts
refused '^dtool: hosts:1: no host is named' command --hostfile hosts
printf '%s slots=2\n\nh2 slot=3\n' "$host" >hosts
refused "^dtool: hosts:3: unknown key 'slot'" command --hostfile hosts
printf '%s\n%s\n' "$host" "$host" >hosts
refused '^dtool: hosts:2: .*twice' command --hostfile hosts
refused 'hostfile' command --hostfile .
printf '%s\0\n' "$host" >hosts
refused '^dtool: hostfile hosts is not a text file$' command --hostfile hosts
refused '^dtool: --hostfile: the value is empty' command --hostfile ''

# Flags and their values.
for value in 0 abc -1 1e999 nan 3s; do
  refused "^dtool: --timeout: '$value' is not a number of seconds from 0.001 to 31536000" command --runs_on "$host" --timeout "$value"
  refused "^dtool: --connect_timeout: '$value' is not a number of seconds from 0.001 to 31536000" command --runs_on "$host" "--connect-timeout=$value"
done
for value in 0 abc -1 1.5 '' 99999999999999999999; do
  refused "^dtool: --width: '$value' is not a whole number from 1 to 2147483647" command --runs_on "$host" --width "$value"
done
refused "^dtool: --timeout: '' is not" command --runs_on "$host" --timeout ''
refused '^dtool: --timeout wants a value' command --runs_on "$host" --timeout=
refused '^dtool: --command: the value is empty' command --runs_on "$host" --command ''
for flag in --output_dir --extra_tag --env_activate_path --modules --container --config_kwargs --gpus --exclude --runs_on; do
  refused "^dtool: $flag: the value is empty$" run "$flag" '' -- true
  expect_error '^hint: is a shell variable empty\? dtool run --help all '
done
for folder in / /root/..; do
  refused "^dtool: --code_path $folder: code does not go among a host's own folders$" run --runs_on "$host" --code_path "$folder" -- true
done
for command in status show logs fetch plot kill rerun; do
  refused '^dtool: RUN: the value is empty$' "$command" ''
done
refused '^dtool: PATH: the value is empty$' copy --runs_on "$host" '' x
refused '^dtool: --runs_on wants a value' command --runs_on
refused '^dtool: --timeout is given more than once' command --runs_on "$host" --timeout 3 --timeout 4
refused "^dtool: --color: 'sometimes' is not one of auto, always, never$" command --runs_on "$host" --color sometimes
refused '^dtool: --runs_an is not a flag of dtool command$' command --runs_an "$host"
expect_error 'hint: did you mean --runs_on\?'
refused '^dtool: --time_out is not a flag' command --runs_on "$host" --time-out=3
expect_error 'hint: did you mean --timeout\?'
refused '^dtool: --nproc is not a flag' run --runs_on "$host" --nproc 2 -- true
expect_error 'hint: did you mean --nproc_per_node\?'
refused '^dtool: --zzzzzzz is not a flag' command --zzzzzzz
expect_error 'hint: dtool command --help all lists all'
refused '^dtool: -n is not a flag' command -n 3
refused '^dtool: comand is not a command of dtool$' comand --runs_on "$host"
expect_error 'hint: did you mean command\?'
refused 'is not a command of dtool' comand --help
refused 'is not a command of dtool' help comand
refused '^dtool: --json stands before the command' --json command --runs_on "$host"
refused 'does not expect the word uptime' command --runs_on "$host" uptime
expect_error 'hint: a command goes after --: dtool command -- uptime'
refused 'does not expect the word h8' trust h8 h9
expect_error 'hint: hosts go after --runs_on, and are joined by commas: dtool trust --runs_on h8,h9;'
refused 'does not expect the word h9' command --runs_on "$host" h9 --command uptime
expect_error 'hint: .*hosts are joined by commas'
refused 'does not expect the word train.py' run --runs_on "$host" python3 train.py
expect_error 'hint: .*after --: dtool run -- python3 train.py;'
refused 'both say what to run' command --runs_on "$host" --command uptime -- uptime
refused 'takes no words after --' trust --runs_on "$host" -- uptime
refused '^dtool: no hosts were named$' trust

for value in -1 abc '' 18446744073709551616 99999999999999999999999; do
  refused "^dtool: --seed: '$value' is not a whole number from 0 to 18446744073709551615$" run digits --runs_on "$host" --seed "$value" --dry_run
done
refused "^dtool: --rank: 'x' is not a whole number from 0 to 2147483647$" logs --rank x
refused "^dtool: --rank: '99999999999' is not a whole number from 0 to 2147483647$" logs --rank 99999999999
refused "^dtool: --grace: 'x' is not a number" kill --grace x
refused "^dtool: --grace: '-1' is not a number from 0 to 3600$" kill --grace -1
refused "^dtool: --max_restarts: '1001' is not a whole number from 0 to 1000$" run digits --max_restarts 1001 --dry_run
for value in 0 86401 1.5; do
  refused "^dtool: --lost_after: '$value' is not a whole number from 1 to 86400$" run digits --lost_after $value --dry_run
done

# Words of another tool, or in another place.
refused '^dtool: there is no experiment h2, and python3 is the program$' run --runs_on "$host" h2 -- python3 train.py
expect_error '^hint: hosts are joined by commas: --runs_on h1,h2;'
refused '^dtool: --launcher: torchrun goes by a flag of its own: dtool run --torchrun -- train.py$' run --launcher torchrun --runs_on "$host" -- train.py
refused "^dtool: --launcher: mpirun's name is mpi$" run --launcher mpirun --runs_on "$host" -- true
refused '^dtool: --launcher: this machine is a host: --runs_on local$' run --launcher local -- true
refused '^dtool: RUN is required$' rerun
expect_error '^hint: dtool list shows the runs, and last is the newest$'
refused '^dtool: --resume wants a value$' run --resume
expect_error '^hint: dtool list shows the runs, and last is the newest$'
refused '^dtool: --seed wants a value$' run --runs_on "$host" --seed -- true
refused '^dtool: --max_restart is not a flag of dtool run$' run --runs_on "$host" --max_restart 3 -- true
expect_error 'hint: did you mean --max_restarts\?'
refused '^dtool: --nproc_per_node wants a number from 1 to 4096 or auto, not two$' run --runs_on "$host" --nproc_per_node two -- true
refused '^dtool: --torchrun starts Python itself: leave python3 away$' run --torchrun --runs_on "$host" -- python3 train.py
refused '^dtool: --export: LR is not set here$' run --runs_on "$host" --export LR -- true
expect_error '^hint: give it a value: --export LR='
refused '^dtool: dtool diff compares two runs, and 1 was named$' diff one
refused '^dtool: where to copy train.py is not said$' copy --runs_on "$host" train.py
refused '^dtool: --watch with --json would be many documents$' status last --watch --json

# Files with a wrong letter.
echo x >hosts.list
echo numpy >requirements.txt
echo A=b >settings.env
refused '^dtool: hostfile host.list: cannot be read: No such file or directory$' run --hostfile host.list -- true
expect_error '^hint: did you mean hosts.list\?$'
refused '^dtool: --runs_on hosts.list: that is a file$' run --runs_on hosts.list -- true
expect_error '^hint: --hostfile hosts.list reads hosts from it$'
refused "^dtool: kill: '-9' is no run$" kill -9 nothing
expect_error '^hint: --grace says how long a program has between TERM and KILL$'
refused '^dtool: --environment requirments.txt: there is no such file$' run --runs_on "$host" --environment requirments.txt -- true
expect_error '^hint: did you mean requirements.txt\?$'
refused '^dtool: --env_file: there is no file setings.env$' run --runs_on "$host" --env_file setings.env -- true
expect_error '^hint: did you mean settings.env\?$'
refused '^dtool: --data host.list: there is no host.list$' run --runs_on "$host" --data host.list -- true
expect_error '^hint: did you mean hosts.list\?$'
refused '^dtool: there is no host.list$' copy --runs_on "$host" host.list x
expect_error '^hint: did you mean hosts.list\?$'
refused '^dtool: --config_script: there is no file host.list$' config --runs_on "$host" --config_script host.list
expect_error '^hint: did you mean hosts.list\?$'

# Files that are something else.
echo 'import os' >train.py
refused '^dtool: train.py is a program, and an experiment is a TOML file$' run train.py --runs_on "$host"
expect_error '^hint: a program goes after --: dtool run -- python3 train.py$'
echo 'echo "$RANK"' >hello.sh
refused '^dtool: hello.sh is a program, and an experiment is a TOML file$' run hello.sh --runs_on "$host"
expect_error '^hint: a program goes after --: dtool run -- bash hello.sh$'
refused '^dtool: there is no experiment digits.toml' run digits.toml --runs_on "$host"
expect_error "^hint: did you mean 'digits'\\?$"
echo 'workload "classifier"' >plain
refused '^dtool: plain:1:10: ' run plain --runs_on "$host"
expect_error '^hint: an experiment is a TOML file; a program goes after --'
touch mine.toml
refused '^dtool: there is no experiment mime.toml' run mime.toml --runs_on "$host"
expect_error "^hint: did you mean 'mine.toml'\?$"
refused '^dtool: there is no experiment nosuchthing' run nosuchthing --runs_on "$host"
expect_error '^hint: these come with dtool: autoencoder, cartpole, digits'
rm plain mine.toml
: >empty.sh
refused '^dtool: --config_script: empty.sh is empty$' config --runs_on "$host" --config_script empty.sh
refused '^dtool: --config_script: \.: cannot be read: Is a directory$' config --runs_on "$host" --config_script .

# --ssh_cmd.
for words in '-A' 'ssh -v' 'scp' 'ssh -L 1:2:3' "ssh -o StrictHostKeyChecking" '-p' 'ssh -p 70000' 'ssh -o Port=no' 'ssh "-i x' \
  'ssh {addr} uptime' 'ssh -F no_such_file'; do
  refused '^dtool: ' command --runs_on "$host" --command 'touch started' --ssh_cmd "$words"
done
refused '^dtool: --ssh_cmd: -v is not understood$' command --runs_on "$host" --ssh_cmd 'ssh -v'
refused '^dtool: --ssh_cmd: -p wants a value$' command --runs_on "$host" --ssh_cmd 'ssh -p'
refused '^dtool: --ssh_cmd: the value is empty$' command --runs_on "$host" --ssh_cmd ''

# Programs that this machine would run, and does not have.
refused '^dtool: nosuchprogram: no such program on this machine$' run -- nosuchprogram
for words in pyhton:python3 torchrnu:torchrun acelerate:accelerate; do
  refused "^dtool: ${words%:*}: no such program on this machine$" run -- "${words%:*}" x
  expect_error "^hint: did you mean ${words#*:}\?$"
done
expect_exit 0 dtool run --dry_run --runs_on "$host" -- pyhton -c 1
expect_error '^pyhton is no program here; did you mean python3\?$'
expect_exit 0 dtool run --dry_run --runs_on "$host" -- python3.99 -c 1
expect_no_error 'did you mean'
refused '^dtool: ./absent: no such program on this machine$' run -- ./absent
expect_error '^hint: it is looked for from the current folder$'
touch my_script
refused '^dtool: ./my_script may not be executed$' run -- ./my_script
refused '^dtool: my_script: no such program on this machine$' run -- my_script
expect_error '^hint: it is in the current folder: ./my_script$'
rm my_script

# Folders that are too much to send.
for folder in / /tmp "$HOME"; do
  (cd "$folder" && refused "^dtool: the current folder $folder is no code tree to send$" run --runs_on "$host" -- true)
  (cd "$folder" && expect_error "^hint: change into the tree's folder, or give --no_sync$")
done

# A folder that is gone.
mkdir gone
(cd gone && rmdir ../gone && refused '^dtool: the current folder was deleted$' run --runs_on "$host" -- true)

# Configuration files.
mkdir -p "$HOME/.dtool"
configured() {
  printf '%b' "$2" >"$HOME/.dtool/config.toml"
  refused "^dtool: $HOME/.dtool/config.toml:$1" command --runs_on "$host" --command 'touch started'
}
configured '2:[0-9]+: .*run_on' '# mine\nrun_on = "h1"\n'
expect_error "hint: did you mean 'runs_on'\?"
configured 2: '[ssh]\nwidht = 3\n'
expect_error "hint: did you mean 'width'\?"
configured 2: '[ssh]\nwidth = "3"\n'
configured 2: '[ssh]\nwidth = 0\n'
configured 1: 'runs_on = \n'
configured 1: '[ssh\n'
rm "$HOME/.dtool/config.toml"
mkdir "$HOME/.dtool/config.toml"
refused "$HOME/.dtool/config.toml" command --runs_on "$host" --command true
rmdir "$HOME/.dtool/config.toml"

# None of it reached the host.
expect_no_file "$DTOOL_LAB_FOLDER/host1/root/started"
expect_exit 1 grep 'Connection from' "$DTOOL_LAB_FOLDER/host1/sshd.log"
expect_exit 0 dtool command --runs_on "$host" --command true
expect_exit 0 grep 'Connection from' "$DTOOL_LAB_FOLDER/host1/sshd.log"

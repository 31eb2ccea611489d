#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A table of the mistakes that users make most: each ends with its exit code, and names the cause and what to do.
# No host is needed: a command that is refused here has reached none.
source "$(dirname "$0")/harness.sh"

mkdir folder
: >empty
echo 'print(1)' >setup.py
: >metrics.jsonl
printf 'echo hello\n' >hello.sh
: >train.py
printf 'echo hello\r\n' >windows.sh
printf 'h1 4\n' >words
printf 'h1 slots=two\n' >slots
printf 'h1,h2\n' >commas
printf '[gpu]\nh1\n' >inventory

rows=0
while IFS='|' read -r line code cause hint; do
  [[ -n $line && $line != '#'* ]] || continue
  words=()
  eval "words=($line)"
  expect_exit "${code// /}" timeout 20 "$DTOOL" "${words[@]}"
  for part in "$cause" "$hint"; do
    read -r part <<<"$part"
    grep -qF -- "$part" "$err" || fail "dtool $line: its message lacks: $part"
  done
  expect_equal '' "$(cat "$out")"
  ((rows += 1))
done <<'END'
# command line | exit code | cause | hint

# Words of other programs.
ls | 2 | ls is not a command of dtool | did you mean list?
ps | 2 | ps is not a command of dtool | did you mean status?
stop | 2 | stop is not a command | did you mean kill?
start | 2 | start is not a command | did you mean run?
train | 2 | train is not a command | did you mean run?
mpirun -np 2 x | 2 | mpirun is not a command | did you mean run?
srun -N 2 x | 2 | srun is not a command | did you mean run?
torchrun train.py | 2 | torchrun is not a command | did you mean run?
exec h1 ls | 2 | does not expect the word ls | dtool exec RUN -- ls
exec -it h1 -- ls | 2 | -it is not a flag of dtool exec | dtool ssh gives a program a terminal
ssh h1 ls | 2 | does not expect the word ls | dtool ssh RUN -- ls
exec a -e F=1 -- ls | 2 | -e is not a flag of dtool exec | env VAR=VALUE PROGRAM
exec a -w /data -- ls | 2 | -w is not a flag of dtool exec | 'cd FOLDER; ls'
ssh a -L 8080:80 | 2 | -L is not a flag of dtool ssh | dtool forward makes a port
ssh -t a | 2 | -t is not a flag of dtool ssh | a terminal
ssh -p 2222 a | 2 | -p is not a flag of dtool ssh | HOST:PORT
forward -L 8080:h1:80 h1 | 2 | -L is not a flag of dtool forward | dtool forward HOST [HERE:]THERE
copy -r a b | 2 | -r is not a flag of dtool copy | folders are copied
fetch a -D b | 2 | -D is not a flag of dtool fetch | dtool fetch RUN FOLDER
status -j 7 | 2 | -j is not a flag of dtool status | dtool status RUN
list --limit 5 | 2 | --limit is not a flag of dtool list | the newest first
logs a --previous | 2 | --previous is not a flag of dtool logs | did you mean --first_failure?
run --tee 3 -- true | 2 | --tee is not a flag of dtool run | dtool logs
run --no-python -- true | 2 | --no_python is not a flag of dtool run | dtool run -- ./program
run --report-bindings -- true | 2 | --report_bindings is not a flag of dtool run | --mpirun_arg
run --mem-per-cpu 1G -- true | 2 | --mem_per_cpu is not a flag of dtool run | --sbatch_arg
run --pty bash | 2 | --pty is not a flag of dtool run | dtool ssh gives a program a terminal
run --restart always -- true | 2 | --restart is not a flag of dtool run | did you mean --max_restarts?
run --network host -- true | 2 | --network is not a flag of dtool run | the network and the memory of its host
jobs | 2 | jobs is not a command of dtool | did you mean list?
wait a | 2 | wait is not a command of dtool | did you mean status --watch?
scontrol show job 7 | 2 | scontrol is not a command of dtool | did you mean show?
cp a b | 2 | cp is not a command of dtool | did you mean copy?
top | 2 | top is not a command of dtool | did you mean status --watch?
rm a | 2 | rm is not a command of dtool | did you mean kill --delete?
queue | 2 | queue is not a command of dtool | did you mean list --state?
cancel a | 2 | cancel is not a command of dtool | did you mean kill?
rerun a -ppn 2 | 2 | -ppn is not a flag of dtool rerun | --nproc_per_node
run --rdzv_backend c10d -- true | 2 | --rdzv_backend is not a flag | --distributed_ip_and_port
run --volume /data -- true | 2 | --volume is not a flag of dtool run | did you mean --bind?
command -p 2222 | 2 | -p is not a flag of dtool command | --runs_on HOST:PORT
status -o json | 2 | -o is not a flag of dtool status | did you mean --json?
show --log-failed | 2 | --log_failed is not a flag of dtool show | dtool logs --first_failure
-v | 2 | -v is not a flag of dtool | did you mean --version?
log | 2 | log is not a command | did you mean logs?
--verbose | 2 | --verbose is not a flag of dtool | dtool --help lists all
run -n three -- true | 2 | --nproc_per_node wants a number from 1 to 4096 or auto, not three |
run -N 2 -- true | 2 | -N is not a flag of dtool run | --runs_on
run -H "h1 h2" -- true | 2 | does not hold | hosts are joined by commas
run --ntasks 3 -- true | 2 | --ntasks is not a flag | --nproc_per_node
run --nnodes 2 -- true | 2 | --nnodes is not a flag | --runs_on
run --node_rank 1 -- true | 2 | --node_rank is not a flag | in the order of --runs_on
run --master_port 29500 -- true | 2 | --master_port is not a flag | --distributed_ip_and_port
logs -n ten | 2 | --tail: 'ten' is not a whole number | dtool logs --help
kill a --force | 2 | --force is not a flag of dtool kill | --grace 0 kills at once
kill a --forgets | 2 | --forgets is not a flag of dtool kill | hint: dtool kill --help all lists all
run --name foo -- true | 2 | --name is not a flag of dtool run | --extra_tag
run -J foo -- true | 2 | -J is not a flag of dtool run | --extra_tag
run --env F=1 -- true | 2 | --env is not a flag of dtool run | --export VAR=VALUE
run -e F=1 -- true | 2 | -e is not a flag of dtool run | --export VAR=VALUE
run --detach -- true | 2 | --detach is not a flag of dtool run | --follow shows it
command -w gpu[1-3] -x gpu4 | 2 | --exclude_hosts: gpu4 is not among the hosts | did you mean gpu1?
command -x gpu4 | 2 | none were | --runs_on names them
run -w h1 -x h1 -- true | 2 | --exclude_hosts leaves out all hosts |
run --num-nodes 2 -- true | 2 | --num_nodes is not a flag | --runs_on
command -i key | 2 | -i is not a flag of dtool command | --ssh_cmd 'ssh -i KEY'

# What a run is.
run torchrun train.py | 2 | does not expect the word train.py | dtool run -- torchrun train.py
run -- 'python train.py --lr 0.1' | 2 | is one word, and names no program | without the quotes: -- python train.py --lr 0.1
run -- pyhton train.py | 2 | pyhton: no such program on this machine | did you mean python3?
run --runs_on h1 --output_dir "${nope-}" -- true | 2 | --output_dir: the value is empty | is a shell variable empty?
run -- bash absent.sh | 2 | absent.sh is not in this folder | --no_sync
run --runs_on h1 -- ./absent.sh | 2 | ./absent.sh is not in this folder | --no_sync
run --runs_on h1 -- ./hello.sh | 2 | ./hello.sh may not be executed | chmod +x
run --runs_on h1 -- hello.sh | 2 | hello.sh is in this folder | write ./hello.sh
run --runs_on h1 -- train.py | 2 | train.py is in this folder | write python3 train.py
run --runs_on h1 -- bash windows.sh | 2 | windows.sh: its lines end as on Windows | sed -i
run --runs_on h1 --exclude '*.py' -- python3 train.py | 2 | train.py is excluded | --no_sync
run -- --follow python3 train.py | 2 | --follow is no program | before --
run -- python3 train.py --dry_run | 2 | --dry_run stands after -- | before --
run --runs_on h1 --output_dir '$HOME/out' -- true | 2 | $HOME/out: the hosts replace only ~/ | with / or ~/
run hello.sh | 2 | hello.sh is a program | dtool run -- bash hello.sh
run 'bash hello.sh' | 2 | there is no experiment 'bash hello.sh' | a program goes after --: dtool run -- bash hello.sh
run digit | 2 | there is no experiment digit | did you mean 'digits'?
run digits --config_kwargs '{epochs:3}' | 2 | --config_kwargs: parse error | quote it for the shell
run digits --config_kwargs 'train.epochs=3' | 2 | wants a JSON object | '{"train":{"epochs":3}}'
run digits --config_kwargs train.lr=adam | 2 | wants a JSON object, not train.lr=adam | hint: --config_kwargs '{"train":{"lr":"adam"}}'
run wide.toml train.epochs=3 train.lr=0.5 | 2 | does not expect the word train.epochs=3 | --config_kwargs '{"train":{"epochs":3,"lr":0.5}}'
run sweep a=b | 2 | does not expect the word a=b | dtool run -- sweep a=b
run digits --config_kwargs '{"train":{"epoch":3}}' | 2 | unknown key 'train.epoch' | did you mean 'epochs'?
run digits --runs_on h1 --config_kwargs '{"train":{"epoch":3}}' --dry_run | 2 | unknown key 'train.epoch' | did you mean 'epochs'?
run digits --distributed_ip_and_port 29500 | 2 | wants IP:PORT or auto, not 29500 | from 1 to 65535
run digits --distributed_ip_and_port auto:70000 | 2 | not auto:70000 | from 1 to 65535
run digits --seed one | 2 | --seed: 'one' is not a whole number | dtool run --help
run digits --max_restarts yes | 2 | --max_restarts: 'yes' is not a whole number | dtool run --help
run digits --launcher slrum | 2 | 'slrum' is not one of ssh, slurm, gridengine, mpi | did you mean slurm? dtool run --help
run digits --env_activate_path /no/such | 2 | there is no file /no/such | a script that makes it runs on each host
run digits --resume nothing | 2 | digits was named, too | leave it out

# Hosts.
command uptime | 2 | does not expect the word uptime | a command goes after --: dtool command -- uptime
command h1 ls | 2 | does not expect the word h1 | or with hosts: --runs_on h1 -- ls
command -w h1 -u 6 uptime | 2 | -u is not a flag | did you mean --timeout?
command -a -- uptime | 2 | -a is not a flag | all hosts of all groups are --runs_on '@*'
command -w h1 -S -- uptime | 2 | -S is not a flag | did you mean --exit_code max?
run -w h1 -x LR=0.1 -- true | 2 | 'LR=0.1' is a variable | --export gives to the processes
run -w h1 --dependency=1 -- true | 2 | --dependency is not a flag | --sbatch_arg
run -w h1 --bind-to core -- true | 2 | --bind_to is not a flag | --mpirun_arg
hosts -w h1 | 2 | -w is not a flag | the hosts stand alone
pdcp f /tmp | 2 | pdcp is not a command | did you mean copy?
command --runs_on h1 h2 --command x | 2 | does not expect the word h2 | hosts are joined by commas
command --runs_on 'h1 h2' --command x | 2 | does not hold ' ' | hosts are joined by commas
command --runs_on 'h1;h2' --command x | 2 | does not hold ';' | hosts are joined by commas
command –-runs_on h1 --command x | 2 | –-runs_on has a typographic dash | type --runs_on
run —follow -- true | 2 | —follow has a typographic dash | type --follow
command --runs_on “h1” --command x | 2 | does not hold '“' | a typographic quotation mark
command --runs_on ./hosts --command x | 2 | does not hold '/' | --hostfile
command --runs_on @gpus --command x | 2 | no group @gpus | hint:
command --hostfile words --command x | 2 | unknown key '4' | slots=N
command --hostfile commas --command x | 2 | 'h1,h2' is not one host | ranges and commas are for --runs_on
command --hostfile inventory --command x | 2 | an Ansible inventory | [groups] of dtool.toml
command --runs_on nosuch.invalid --command x | 1 | cannot resolve nosuch.invalid | check the spelling
command | 2 | no run is recorded | --runs_on names hosts
trust | 2 | no hosts were named | --runs_on names them
install | 2 | no hosts were named | --runs_on names them
trust h1 | 2 | does not expect the word h1 | dtool trust --runs_on h1
check h1 | 2 | does not expect the word h1 | dtool check --runs_on h1
disconnect all | 2 | does not expect the word all | dtool disconnect alone closes all
config | 2 | there is nothing to do | --config_script names a script
config hello.sh | 2 | does not expect the word hello.sh | --config_script hello.sh
config --config_script setup.py --runs_on local | 2 | setup.py has no #! line, so bash would run it | #!/usr/bin/env python3

# Runs that are not there.
status nothing | 2 | no run 'nothing' is recorded | dtool run starts one
logs nothing | 2 | no run 'nothing' is recorded | dtool run starts one
logs one two | 2 | does not expect the word two | logs takes one run
logs last 5 | 2 | does not expect the word 5 | --tail 5
kill all | 2 | no run 'all' is recorded | --all ends every run
plot metrics.jsonl | 2 | metrics.jsonl is a file, and no run | --file metrics.jsonl
rerun nothing | 2 | no run is recorded | dtool run starts one
run --resume nothing | 2 | no run is recorded | dtool run starts one
show a b | 2 | no run is recorded in | dtool run starts one
diff | 2 | RUN is required | dtool list shows the runs
diff a | 2 | 1 was named | dtool list shows the runs
rerun | 2 | RUN is required | dtool list shows the runs

# Values.
logs --tail ten | 2 | --tail: 'ten' is not a whole number | dtool logs --help
command --runs_on ${nope-} --command hostname | 2 | --runs_on wants a value, and --command follows | is a shell variable empty?
plot --size big | 2 | 'big' is no WIDTHxHEIGHT | dtool plot --help
plot --y_axis logarithm | 2 | is not one of auto, linear, log | dtool plot --help
fetch digits --only | 2 | --only wants a value | dtool fetch --help
completion tcsh | 2 | 'tcsh' is not one of bash, zsh, fish | dtool completion --help
completion | 2 | SHELL is required | dtool completion --help
copy | 2 | PATH is required | dtool copy --help
copy folder | 2 | where to copy folder is not said | the last word is a folder
copy folder sets | 2 | no hosts were named | --runs_on names them
copy folder h1:sets | 2 | no hosts were named | dtool copy --runs_on h1 folder sets
END
((rows >= 60)) || fail "rows of the table: $rows"
expect_no_file "$HOME/.dtool/killfiles"

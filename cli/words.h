// SPDX-License-Identifier: MIT
// Words for people at the command line (cli/command_line.cpp): those of other programs that fingers
// know, with a hint at what has their part here, and what the short helps show.
#pragma once

#include <string_view>
#include <utility>

namespace dtool::cli {

/// Such words, and the hint.
struct OthersWords {
  std::string_view words;
  std::string_view ours;  ///< the hint is for commands that have this flag
  std::string_view hint;
};

/// Flags of torchrun, mpirun, Slurm, Docker, kubectl, gh, pdsh, ssh and tail. The first row counts
/// whose flag the command has.
inline constexpr OthersWords kOthersFlags[] = {
    {"-N", "--shell", "--outdir writes files without the hosts' names in them"},
    {"-o --output", "--outdir", "did you mean --outdir?"},
    {"--nnodes --nodes -N --num_nodes --num_machines --replicas", "--runs_on",
     "the hosts decide how many machines there are: --runs_on"},
    {"--node_rank --machine_rank", "--runs_on",
     "dtool gives each machine its number, in the order of --runs_on"},
    {"--master_addr", "--runs_on",
     "rank 0 is on the first host; --distributed_ip_and_port chooses its address"},
    {"--master_port", "--runs_on",
     "dtool takes a free port; --distributed_ip_and_port chooses one"},
    {"--rdzv_endpoint --rdzv_backend --rdzv_id", "--distributed_ip_and_port",
     "the machines find rank 0 by themselves; --distributed_ip_and_port chooses where it listens"},
    {"--standalone", "--runs_on", "a run without --runs_on is on this machine"},
    {"-m --module", "--torchrun", "a module goes after --: -- python3 -m NAME"},
    {"--ntasks --ntasks_per_node --num_processes -ppn --map_by", "--nproc_per_node",
     "--nproc_per_node says how many processes each machine has"},
    {"--host --nodelist", "--runs_on", "hosts go after --runs_on, or with a file after --hostfile"},
    {"-g", "--runs_on", "a group stands among the hosts: --runs_on @GROUP"},
    {"--machinefile", "--hostfile", "did you mean --hostfile?"},
    {"--mca --bind_to --rank_by --report_bindings --oversubscribe --tag_output --output_filename "
     "--allow_run_as_root",
     "--mpirun_arg", "mpirun's own flags go after --mpirun_arg"},
    {"--dependency --mail_type --mail_user --mem_per_cpu --begin --reservation", "--sbatch_arg",
     "sbatch's own flags go after --sbatch_arg"},
    {"--num_gpus", "--nproc_per_node", "did you mean --nproc_per_node, or --gpus?"},
    {"--env -e", "--export", "variables go after --export: --export VAR=VALUE"},
    {"-d --detach", "--follow", "a run goes on by itself; --follow shows it until its end"},
    {"--no_python", "--torchrun", "any program goes after --: dtool run -- ./program"},
    {"--tee --redirects -r", "--torchrun",
     "dtool logs shows the logs, with --rank those of a rank"},
    {"--restart", "--max_restarts", "did you mean --max_restarts?"},
    {"--network --ipc", "--container", "a container has the network and the memory of its host"},
    {"--pty", "--follow", "dtool ssh gives a program a terminal"},
    {"--name --job_name -J", "--extra_tag", "--extra_tag TEXT becomes a part of the run's id"},
    {"--array", "--seeds", "--seeds LIST starts a run for each seed"},
    {"-p", "--partition", "did you mean --partition?"},
    {"-t", "--time", "did you mean --time?"},
    {"-c", "--cpus_per_task", "did you mean --cpus_per_task?"},
    {"-A", "--account", "did you mean --account?"},
    {"--wdir --chdir --workdir -D", "--code_path",
     "--code_path says where the code goes on the hosts"},
    {"--output --log_dir -o", "--output_dir",
     "outputs and logs go below --output_dir; dtool logs shows logs"},
    {"--image --rm -it", "--container", "did you mean --container IMAGE?"},
    {"--volume --mount -v", "--bind", "did you mean --bind?"},
    {"-i", "--ssh_cmd", "a key goes into ssh's command line: --ssh_cmd 'ssh -i KEY'"},
    {"--user -l", "--runs_on", "a user stands before the host: --runs_on USER@HOST"},
    {"--port -p", "--runs_on", "a port stands after the host: --runs_on HOST:PORT"},
    {"--force -f", "--grace", "--grace 0 kills at once"},
    {"--signal", "--grace", "--grace says how long a program has between TERM and KILL"},
    {"--follow -f -w", "--watch", "did you mean --watch?"},
    {"-c", "--machine", "did you mean --machine?"},
    {"--lines --limit -L", "--tail", "did you mean --tail?"},
    {"--previous -p", "--first_failure", "did you mean --first_failure?"},
    {"-a --all", "--state", "dtool list shows all runs"},
    {"--limit -L --user -u", "--state",
     "words choose runs, the newest first: dtool list lr=0.5 failed"},
    {"--fanout --forks", "--width", "did you mean --width?"},
    {"-y", "--yes", "did you mean --yes?"},
    {"-t", "--shell", "did you mean --connect_timeout? dtool ssh gives a program a terminal"},
    {"-it -i --tty", "--shell", "dtool ssh gives a program a terminal"},
    {"-u --command_timeout", "--shell", "did you mean --timeout?"},
    {"-a --all", "--shell", "all hosts of all groups are --runs_on '@*'"},
    {"-f", "--shell", "did you mean --width?"},
    {"-w --workdir", "--shell", "-m takes a host; a folder goes into the line: -- 'cd FOLDER; ls'"},
    {"-e --env", "--shell", "variables stand before a program: -- env VAR=VALUE PROGRAM"},
    {"-S", "--shell", "did you mean --exit_code max?"},
    {"-k", "--shell", "did you mean --fail_fast?"},
    {"-L -B", "--shell", "did you mean --fold?"},
    {"--copy --rcopy", "--shell", "dtool copy sends files, and brings them with --from"},
    {"--dest", "--from", "the folder stands last"},
    {"--rcopy", "--from", "did you mean --from?"},
    {"-r -R --recursive -a --archive", "--from", "folders are copied with all that is in them"},
    {"--dir -D", "--only", "the folder stands behind the run: dtool fetch RUN FOLDER"},
    {"-n --name --pattern", "--only", "did you mean --only?"},
    {"-L --address", "--open", "ports stand behind the host: dtool forward HOST [HERE:]THERE"},
    {"-j --job --jobs", "--ask", "the run stands alone: dtool status RUN"},
    {"-L", "--ask", "dtool forward makes a port there this machine's own"},
    {"-p --port", "--ask", "a port stands behind the host: HOST:PORT"},
    {"-t", "--ask", "dtool ssh gives a program a terminal"},
    {"-w -e --expand", "--count", "the hosts stand alone: dtool hosts 'gpu[1-8]'"},
    {"-f", "--count", "did you mean --fold?"},
    {"-x", "--count", "! leaves hosts out: 'gpu[1-8]!gpu3'"},
    {"-i", "--count", "& takes the hosts in both: '@lab&gpu[1-8]'"},
    {"-q", "--quiet", "did you mean --quiet?"},
    {"-o --output", "--json", "did you mean --json?"},
    {"--jq", "--json", "jq reads what --json prints"},
    {"--log", "--json", "dtool logs shows the logs"},
    {"--log_failed", "--json", "dtool logs --first_failure shows the lines before a failure"},
};

/// Commands of other programs, by dtool's own.
inline constexpr std::pair<std::string_view, std::string_view> kOthersCommands[] = {
    {"ls sacct history jobs workflow", "list"},
    {"queue squeue", "list --state"},
    {"ps qstat get", "status"},
    {"top watch wait stats events sstat", "status --watch"},
    {"describe inspect view info scontrol", "show"},
    {"compare", "diff"},
    {"tail", "logs"},
    {"stop cancel scancel qdel", "kill"},
    {"rm delete", "kill --delete"},
    {"start train launch submit apply mpirun mpiexec torchrun deepspeed accelerate srun sbatch "
     "salloc qsub orterun prterun docker kubectl gh",
     "run"},
    {"resume", "run --resume"},
    {"restart retry repeat", "rerun"},
    {"pdsh clush", "command --runs_on HOSTS -- PROGRAM"},
    {"shell", "ssh"},
    {"screen tmux", "attach"},
    {"cp scp rsync push upload pdcp sbcast", "copy"},
    {"rpdcp", "copy --from HOSTS"},
    {"pull download", "fetch"},
    {"port-forward tunnel", "forward"},
    {"prune gc", "clean"},
    {"doctor ping sinfo", "check"},
    {"nodeset cluset nodes", "hosts"},
    {"login", "trust"},
    {"logout", "disconnect"},
    {"setup init", "config"},
    {"-v", "--version"},
};

// What `dtool COMMAND --help` shows: an example first, and the flags that matter most. `--help all`
// shows all of them.

struct ShortHelp {
  std::string_view command;
  std::string_view example;
  /// Empty: all flags of the command's own.
  std::string_view flags = {};
};

/// The flags that many commands have, and that matter most.
inline constexpr std::string_view kFirstSharedFlags = "--runs_on --hostfile --json";

inline constexpr ShortHelp kShortHelps[] = {
    {"config", "dtool config -w 'gpu[1-8]' --config_script setup.sh --follow"},
    {"command", "dtool command -w 'gpu[1-8]' -b -- uptime -p",
     "--fold --diff --outdir --timeout --stdin --fail_fast --sudo"},
    {"copy", "dtool copy -w 'gpu[1-8]' data/ /scratch/data"},
    {"run", "dtool run -w 'gpu[1-8]' -n 8 -- python train.py --lr 0.1",
     "--env_activate_path --environment --nproc_per_node --export --follow --resume --dry_run"},
    {"rerun", "dtool rerun last --seed 2",
     "--seed --config_kwargs --nproc_per_node --export --extra_tag --follow --dry_run"},
    {"status", "dtool status last --watch"},
    {"logs", "dtool logs last -f --grep loss"},
    {"exec", "dtool exec last -m 0 -- nvidia-smi",
     "--machine --timeout --stdin --fold --diff --outdir"},
    {"ssh", "dtool ssh last -m 1"},
    {"attach", "dtool attach last --machine 1"},
    {"forward", "dtool forward last 6006 8888:80"},
    {"tensorboard", "dtool tensorboard last --open"},
    {"ssh_config", "dtool ssh_config last >> ~/.ssh/config"},
    {"fetch", "dtool fetch last results --only '*.jsonl'"},
    {"plot", "dtool plot last last-1 --metrics loss", "--file --metrics --output --size --x_axis"},
    {"kill", "dtool kill last"},
    {"list", "dtool list lr=0.5 failed"},
    {"show", "dtool show last"},
    {"diff", "dtool diff last-1 last"},
    {"check", "dtool check -w 'gpu[1-8]' --env_activate_path '~/venv'",
     "--env_activate_path --container --modules --torchrun --no_trainer"},
    {"install", "dtool install -w 'gpu[1-8]' --env_activate_path '~/venv'",
     "--env_activate_path --container --modules"},
    {"clean", "dtool clean -w 'gpu[1-8]' --delete --older_than 30"},
    {"hosts", "dtool hosts --fold '@lab!gpu3'"},
    {"trust", "dtool trust -w 'gpu[1-8]'"},
    {"disconnect", "dtool disconnect -w gpu3"},
    {"completion", "dtool completion bash > ~/.local/share/bash-completion/completions/dtool"},
};

}  // namespace dtool::cli

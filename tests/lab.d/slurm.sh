# A real Slurm over a lab's hosts (`tests/lab up 3 --slurm`): munged and slurmctld on the launcher, a slurmd in each host; sourced by
# tests/lab. The daemons on the launcher are recorded as processes of the lab; those in hosts end with their host.
# shellcheck shell=bash disable=SC2154

# Called before anything is started.
need_slurm() {
  local program
  [[ $mode == isolated ]] || fail '--slurm needs a lab of namespaces, and this one would be without'
  [[ $behind == no ]] || fail '--slurm and --behind do not go together: every host must reach the launcher'
  for program in munged slurmctld slurmd srun; do
    command -v "$program" >/dev/null || fail "--slurm needs $program: tests/dependencies launchers"
  done
}

start_slurm() {
  local here=$folder/slurm i
  mkdir -p "$here/state" "$here/spool"
  head -c 128 /dev/urandom >"$here/munge.key"
  write_slurm_conf
  # Its socket is a path, which all hosts see.
  start_daemon munged --foreground --force --socket="$here/munge.socket" --key-file="$here/munge.key" --pid-file="$here/munged.pid" \
    --log-file="$here/munged.log" --seed-file="$here/munged.seed"
  await_slurm 'munged answers' test -S "$here/munge.socket"
  start_daemon slurmctld -D -f "$here/slurm.conf"
  for ((i = 1; i <= count; i++)); do start_slurmd "$i"; done
  await_slurm 'all nodes are idle' all_nodes_are_idle
}

# The launcher's name with its address on the lab's bridge. slurmctld listens on all addresses, or on what the launcher's name
# means, often 127.0.0.1: so each lab's has a port of its own.
write_slurm_conf() {
  local here=$folder/slurm short=${name//_/-} i
  short=${short:0:40}
  prefix_of "$network"
  {
    printf '%s\n' "ClusterName=lab" "SlurmctldHost=$(hostname -s)($REPLY.254)" "SlurmctldPort=$((21000 + network))" \
      'SlurmUser=root' 'AuthType=auth/munge' "AuthInfo=socket=$here/munge.socket" "StateSaveLocation=$here/state" \
      "SlurmdSpoolDir=$here/spool/%n" "SlurmctldPidFile=$here/slurmctld.pid" "SlurmdPidFile=$here/slurmd.%n.pid" \
      "SlurmctldLogFile=$here/slurmctld.log" "SlurmdLogFile=$here/slurmd.%n.log" 'ProctrackType=proctrack/linuxproc' \
      'TaskPlugin=task/none' 'MpiDefault=none' 'ReturnToService=2' 'SlurmdParameters=config_overrides' 'KillWait=5' \
      'SelectType=select/linear' 'PropagateResourceLimits=NONE' 'SlurmdTimeout=60'
    for ((i = 1; i <= count; i++)); do echo "NodeName=h$i NodeHostname=lab-$short-$i NodeAddr=${addresses[i]} CPUs=16 State=UNKNOWN"; done
    echo "PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
  } >"$here/slurm.conf"
  printf '%s\n' 'CgroupPlugin=cgroup/v1' 'CgroupAutomount=yes' 'IgnoreSystemd=yes' >"$here/cgroup.conf"
}

# On disk before it is a daemon, as a host is.
start_daemon() {
  local program
  program=$(command -v "$1")
  shift
  (
    identity_of "$BASHPID"
    echo "$REPLY" >>"$folder/slurm/processes"
    exec env -i PATH="$host_path" LANG=C.UTF-8 setsid "$program" "$@"
  ) </dev/null >>"$folder/slurm/daemons.log" 2>&1 &
}

# The nodes are called as /etc/hosts calls the hosts; longer names would make the paths of Slurm's sockets too long.
# Slurm looks for a freezer even where it is told to track processes without it.
start_slurmd() {
  mkdir -p "$folder/slurm/spool/h$1"
  exec_isolated "$1" sh -c 'mount -t tmpfs tmpfs /sys/fs/cgroup && mkdir /sys/fs/cgroup/freezer && exec slurmd -N "$2" -f "$1"' sh \
    "$folder/slurm/slurm.conf" "h$1" </dev/null >>"$folder/slurm/daemons.log" 2>&1 || slurm_failed "slurmd does not start on host $1"
}

all_nodes_are_idle() {
  [[ $(SLURM_CONF=$folder/slurm/slurm.conf timeout 10 sinfo --noheader --states idle --format %D 2>/dev/null) == "$count" ]]
}

await_slurm() {
  local what=$1 tries
  shift
  for ((tries = 0; tries < 600; tries++)); do
    ! "$@" || return 0
    sleep 0.1
  done
  slurm_failed "not within a minute: $what"
}

slurm_failed() {
  tail -n 20 "$folder"/slurm/*.log >&2 || true
  fail "$1"
}

end_slurm() {
  local identity tries
  [[ -e $folder/slurm/processes ]] || return 0
  for ((tries = 0; tries < 100; tries++)); do
    local left=no
    while read -r identity; do
      is_alive "$identity" || continue
      left=yes
      kill -"$((tries < 40 ? 15 : 9))" "${identity%%:*}" 2>/dev/null || true
    done <"$folder/slurm/processes"
    [[ $left == yes ]] || return 0
    sleep 0.05
  done
  warn "still running: Slurm's daemons in $folder/slurm/processes"
}

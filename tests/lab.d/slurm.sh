# SPDX-License-Identifier: MIT
# A real Slurm on a lab's hosts (`tests/lab up 3 --slurm`): munged and slurmctld on the launcher, a slurmd in each host. Sourced
# by tests/lab. The daemons on the launcher are recorded as processes of the lab; those in hosts end with their host.
# shellcheck shell=bash disable=SC2154

# Called before anything is started.
need_slurm() {
  local program
  [[ $mode == isolated ]] || fail '--slurm needs a lab of namespaces, and this one would be without'
  [[ $login == no || $count -gt 1 ]] || fail '--login needs a second host, which runs the jobs'
  [[ $behind == no ]] || fail '--slurm and --behind do not go together: every host must reach the launcher'
  for program in munged slurmctld slurmd srun; do
    command -v "$program" >/dev/null || fail "--slurm needs $program: tests/dependencies launchers"
  done
}

# Made before the hosts exist, since each host has the folder of settings as its /etc/slurm, where Slurm's commands find it by
# themselves.
make_slurm_folders() { mkdir -p "$folder/slurm/etc" "$folder/slurm/state" "$folder/slurm/spool" /etc/slurm; }

start_slurm() {
  local here=$folder/slurm i
  head -c 128 /dev/urandom >"$here/munge.key"
  write_slurm_conf
  # Its socket is a path, which all hosts see.
  start_daemon munged --foreground --force --socket="$here/munge.socket" --key-file="$here/munge.key" --pid-file="$here/munged.pid" \
    --log-file="$here/munged.log" --seed-file="$here/munged.seed"
  await_slurm 'munged answers' test -S "$here/munge.socket"
  start_slurmctld
  for ((i = 1; i <= count; i++)); do ! is_node "$i" || start_slurmd "$i"; done
  await_slurm 'all nodes are idle' all_nodes_are_idle
}

start_slurmctld() { start_daemon slurmctld -D -f "$folder/slurm/etc/slurm.conf"; }

# Whether host $1 runs jobs: the login host does not.
is_node() { [[ $login == no || $1 != 1 ]]; }

# Uses the launcher's name with its address on the lab's bridge. slurmctld listens on all addresses, or on that of the
# launcher's name (often 127.0.0.1), so each lab's slurmctld has its own port. Tests should be quick: jobs begin at once, and
# begin again at once when they are requeued (after cred_expire); a kill is short.
write_slurm_conf() {
  local here=$folder/slurm
  prefix_of "$network"
  {
    printf '%s\n' "ClusterName=lab" "SlurmctldHost=$(hostname -s)($REPLY.254)" "SlurmctldPort=$((21000 + network))" \
      'SlurmUser=root' 'AuthType=auth/munge' "AuthInfo=socket=$here/munge.socket,cred_expire=15" "StateSaveLocation=$here/state" \
      "SlurmdSpoolDir=$here/spool/%n" "SlurmctldPidFile=$here/slurmctld.pid" "SlurmdPidFile=$here/slurmd.%n.pid" \
      "SlurmctldLogFile=$here/slurmctld.log" "SlurmdLogFile=$here/slurmd.%n.log" 'ProctrackType=proctrack/linuxproc' \
      'TaskPlugin=task/none' 'MpiDefault=none' 'ReturnToService=2' 'SlurmdParameters=config_overrides' 'KillWait=5' \
      'SelectType=select/cons_tres' 'SelectTypeParameters=CR_CPU_Memory' 'DefMemPerCPU=200' 'GresTypes=gpu' \
      'SchedulerParameters=batch_sched_delay=0,bf_interval=5' 'PropagateResourceLimits=NONE' 'BatchStartTimeout=5' 'SlurmdTimeout=60'
    ((${#slurm_settings[@]} == 0)) || printf '%s\n' "${slurm_settings[@]}"
    node_lines
    printf 'PartitionName=%s Nodes=ALL %s\n' lab 'Default=YES MaxTime=INFINITE' short MaxTime=1 closed 'MaxTime=INFINITE State=DOWN'
  } >"$here/etc/slurm.conf"
  printf '%s\n' 'CgroupPlugin=cgroup/v1' 'CgroupAutomount=yes' 'IgnoreSystemd=yes' >"$here/etc/cgroup.conf"
  # slurmd needs devices but opens none: only their numbers reach a job.
  mknod "$here/gpu0" c 1 3
  mknod "$here/gpu1" c 1 3
  echo "Name=gpu File=$here/gpu[0-1]" >"$here/etc/gres.conf"
}

# Claims more processors, memory and GPUs than there are; tests do not depend on the real ones.
node_lines() {
  local short=${name//_/-} i parity
  short=${short:0:40}
  for ((i = 1; i <= count; i++)); do
    is_node "$i" || continue
    ((i % 2)) && parity=odd || parity=even
    echo "NodeName=h$i NodeHostname=lab-$short-$i NodeAddr=${addresses[i]} CPUs=16 RealMemory=16000 Gres=gpu:2 Feature=$parity State=UNKNOWN"
  done
}

# Recorded on disk before it becomes a daemon, as a host is.
start_daemon() {
  local program
  program=$(command -v "$1")
  shift
  (
    identity_of "$BASHPID"
    echo "$REPLY" >>"$folder/slurm/processes"
    echo "$REPLY" >"$folder/slurm/${program##*/}.process"
    exec env -i PATH="$host_path" LANG=C.UTF-8 setsid "$program" "$@"
  ) </dev/null >>"$folder/slurm/daemons.log" 2>&1 &
}

# The nodes have the hosts' names from /etc/hosts; longer names would make the paths of Slurm's sockets too long. Slurm looks
# for a freezer even if it is told to track processes without one.
start_slurmd() {
  mkdir -p "$folder/slurm/spool/h$1"
  exec_isolated "$1" sh -c 'mount -t tmpfs tmpfs /sys/fs/cgroup && mkdir /sys/fs/cgroup/freezer && exec slurmd -N "$2" -f "$1"' sh \
    "$folder/slurm/etc/slurm.conf" "h$1" </dev/null >>"$folder/slurm/daemons.log" 2>&1 || slurm_failed "slurmd does not start on host $1"
}

all_nodes_are_idle() {
  local nodes=$count
  [[ $login == no ]] || nodes=$((count - 1))
  [[ $(ask_slurm sinfo --noheader --partition lab --states idle --format %D 2>/dev/null) == "$nodes" ]]
}

ask_slurm() { SLURM_CONF=$folder/slurm/etc/slurm.conf timeout 10 "$@"; }

# Stops it as its service does: it saves its state. (A killed slurmctld would forget the last seconds' jobs.)
lab_stop_slurmctld() {
  local tries
  line_of "$folder/slurm/slurmctld.process"
  is_alive "$REPLY" || fail "lab '$name' has no slurmctld that runs"
  for ((tries = 0; tries < 1500; tries++)); do
    is_alive "$REPLY" || return 0
    ((tries % 500)) || kill -"$((tries < 1000 ? 15 : 9))" "${REPLY%%:*}" 2>/dev/null || true
    sleep 0.02
  done
  fail 'slurmctld did not end'
}

lab_restart_slurmctld() {
  line_of "$folder/slurm/slurmctld.process"
  [[ -n $REPLY ]] || fail "lab '$name' has no slurmctld: tests/lab up N --slurm"
  ! is_alive "$REPLY" || lab_stop_slurmctld
  start_slurmctld
  await_slurm 'slurmctld answers' controller_answers
}
controller_answers() { ask_slurm scontrol ping 2>/dev/null | grep -q 'is UP'; }


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

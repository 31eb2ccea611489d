# SPDX-License-Identifier: MIT
# Commands that act on a lab's hosts: running programs in them, and faults. Sourced by tests/lab.
# shellcheck shell=bash disable=SC2154,SC2034

needs_isolation() { [[ $mode == isolated ]] || fail "$1 needs a lab of namespaces, and this one was started without root"; }

# Sets REPLY to the process that holds host $1's namespaces.
host_process() {
  line_of "$folder/host$1/pid"
  is_alive "$REPLY" || fail "host $1 of lab '$name' is not running"
  REPLY=${REPLY%%:*}
}

# Runs a command in host $1, with a login's environment and none of ours. --root is for labs that were started in a chroot.
in_host() {
  local inside=()
  host_process "$1"
  # shellcheck disable=SC2016
  [[ ! -d $folder/host$1/rootfs ]] || inside=(chroot "$folder/host$1/rootfs" /bin/sh -c 'cd && exec "$@"' sh)
  shift
  nsenter --target "$REPLY" --mount --uts --ipc --net --pid="/proc/$REPLY/ns/pid_for_children" --root -- \
    env -i -C /root HOME=/root USER=root LOGNAME=root SHELL=/bin/bash LANG=C.UTF-8 TERM="${TERM:-dumb}" PATH="$host_path" "${inside[@]}" "$@"
}

lab_exec() {
  host_number "${1:-}"
  shift
  (($#)) || fail 'exec needs a host and a command'
  "exec_$mode" "$REPLY" "$@"
}
lab_sudo() { user='' lab_exec "$@"; }
exec_isolated() {
  local host=$1
  shift
  [[ -z $user ]] || set -- env USER="$user" LOGNAME="$user" setpriv --reuid "$user" --regid "$user" --init-groups "$@"
  in_host "$host" "$@"
}

# The launcher's ends of host $1's links.
links_of() {
  links=()
  [[ -n $inner_network && $1 != 1 ]] || links+=("dtl${network}h$1")
  [[ -z $inner_network ]] || links+=("dtl${inner_network}h$1")
}

lab_cut() {
  needs_isolation cut
  host_number "${1:-}"
  links_of "$REPLY"
  local link
  for link in "${links[@]}"; do ip link set "$link" down; done
}

lab_mend() {
  needs_isolation mend
  host_number "${1:-}"
  local link host=$REPLY
  full_speed "$host"
  links_of "$host"
  for link in "${links[@]}"; do ip link set "$link" up; done
  # This machine may be giving up its search for the host, and would then report that there is no route.
  [[ -n $inner_network && $host != 1 ]] && return
  address_of "$network" "$host"
  ip neigh del "$REPLY" dev "dtl$network" 2>/dev/null || true
}

# Undoes `slow`.
full_speed() {
  local link
  links_of "$1"
  end_delays "$1"
  for link in "${links[@]}"; do
    ip link set "$link" master "${link%h*}"
    ! tc qdisc show dev "$link" | grep -q 'qdisc \(netem\|tbf\)' || tc qdisc del dev "$link" root
  done
  in_host "$1" tc qdisc del dev eth0 root 2>/dev/null || true
}

# Applies to both directions, so that `delay 50ms` adds 100 ms to each round trip.
lab_slow() {
  needs_isolation slow
  (($# > 1)) || fail 'slow needs a host and the arguments of tc netem'
  host_number "$1"
  local host=$REPLY
  shift
  full_speed "$host"
  if [[ $1 == rate && $# == 2 ]]; then
    # A fast link has to send more at once than the timers let through in turn (with 32 kbit, 1 Gbit/s were 0.3), and whole segments of 64 kB: with
    # less, the kernel cuts each into packets first, and at 80 Mbit/s eight hosts that pass bytes on kept two cores busy with that alone.
    local burst=32kbit
    [[ ! $2 =~ ^[0-9]{2,}mbit$ ]] || burst=1mbit
    [[ $2 != *gbit ]] || burst=2mbit
    shape_links "$host" tbf rate "$2" burst $burst latency 400ms || fail "tc could not set 'rate $2'"
  elif ! shape_links "$host" netem "$@" 2>/dev/null; then
    delay_links "$host" "$@"
  fi
}

shape_links() {
  local host=$1 link
  shift
  links_of "$host"
  for link in "${links[@]}"; do tc qdisc replace dev "$link" root "$@" || return 1; done
  in_host "$host" tc qdisc replace dev eth0 root "$@"
}

# Not every kernel has netem: without it, a process that carries the frames provides `delay` and `loss`.
delay_links() {
  local host=$1 milliseconds=0 loss=0 arguments="${*:2}" link
  shift
  while (($#)); do
    case "$1 ${2:-}" in
      'delay '*[0-9]ms) milliseconds=${2%ms} ;;
      'loss '*[0-9]%) loss=${2%\%} ;;
      *) fail "this kernel has no netem, without which only 'rate 1mbit', 'delay 50ms' and 'loss 1%' are understood, not '$arguments'" ;;
    esac
    shift 2
  done
  links_of "$host"
  for link in "${links[@]}"; do delay_link "$host" "$link" "$milliseconds" "$loss"; done
}

delay_link() {
  local log=$folder/host$1/delay.log tries
  ip link set "$2" nomaster
  # The link has no address, but would answer for all addresses of this machine.
  echo 8 >"/proc/sys/net/ipv4/conf/$2/arp_ignore"
  setsid "$parts/delay_link" "$2" "$2d" "$3" "$4" </dev/null >"$log" 2>&1 &
  identity_of $!
  echo "$REPLY" >>"$folder/host$1/delays"
  for ((tries = 0; tries < 250; tries++)); do
    if grep -qs ready "$log"; then
      ip link set "$2d" master "${2%h*}" up
      return
    fi
    sleep 0.02
  done
  cat "$log" >&2
  fail "no delay on $2"
}

# Ends the processes of delay_link for host $1; their taps end with them.
end_delays() {
  local file=$folder/host$1/delays identity
  [[ -e $file ]] || return 0
  while read -r identity; do
    ! is_alive "$identity" || kill "${identity%%:*}"
  done <"$file"
  rm "$file"
}

# Sets `pids` to the processes of host $1, with this machine's pids.
processes_of() {
  local space
  host_process "$1"
  space=$(readlink "/proc/$REPLY/ns/pid_for_children")
  mapfile -t pids < <(find /proc -mindepth 3 -maxdepth 3 -path '/proc/[0-9]*/ns/pid' -lname "${space//[/\\[}" -printf '%h\n' 2>/dev/null |
    sed 's,^/proc/\([0-9]*\)/.*,\1,')
}

lab_freeze() { signal_host freeze STOP "${1:-}"; }
lab_thaw() { signal_host thaw CONT "${1:-}"; }
signal_host() {
  needs_isolation "$1"
  host_number "$3"
  local number=$REPLY before tries
  # Processes begin and end meanwhile.
  for ((tries = 0; tries < 20; tries++)); do
    processes_of "$number"
    before="${pids[*]}"
    kill "-$2" "${pids[@]}" 2>/dev/null || continue
    [[ $2 == STOP ]] || return 0
    processes_of "$number"
    [[ "${pids[*]}" != "$before" ]] || return 0
  done
  fail "$1: the processes of h$number do not stand still"
}

# Sets REPLY to a folder for the labs where cgroup v1 or v2 can limit the processor time.
cgroup_folder() { [[ -d /sys/fs/cgroup/cpu ]] && REPLY=/sys/fs/cgroup/cpu/dtool-lab || REPLY=/sys/fs/cgroup/dtool-lab; }

lab_quota() {
  needs_isolation quota
  [[ ${1:-} =~ ^[0-9]*\.?[0-9]+$ ]] || fail "quota needs a number of cores, e.g. 0.2, not '${1:-}'"
  local i period=20000 microseconds
  microseconds=$(awk -v cores="$1" -v period=$period 'BEGIN { printf "%d", cores * period }')
  if [[ -n ${2:-} ]]; then
    host_number "$2"
    limit_host "$REPLY" $period "$microseconds"
  else
    for ((i = 1; i <= count; i++)); do limit_host "$i" $period "$microseconds"; done
  fi
}

limit_host() {
  local group pid
  cgroup_folder
  group=$REPLY
  mkdir -p "$group/$name"
  if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    { echo +cpu >/sys/fs/cgroup/cgroup.subtree_control && echo +cpu >"$group/cgroup.subtree_control" &&
      echo +cpu >"$group/$name/cgroup.subtree_control"; } 2>/dev/null || fail 'this machine gives us no cpu controller (cgroup v2)'
  fi
  group=$group/$name/host$1
  mkdir -p "$group"
  if [[ -e $group/cpu.max ]]; then
    echo "$3 $2" >"$group/cpu.max"
  else
    echo "$2" >"$group/cpu.cfs_period_us" && echo "$3" >"$group/cpu.cfs_quota_us"
  fi || fail "cpu quota of $3 in $2 microseconds refused"
  processes_of "$1"
  for pid in "${pids[@]}"; do echo "$pid" >"$group/cgroup.procs" 2>/dev/null || true; done
}

remove_quota() {
  local group
  cgroup_folder
  for group in "$REPLY/$name"/host* "$REPLY/$name" "$REPLY"; do
    [[ ! -d $group ]] || rmdir "$group" 2>/dev/null || true
  done
}

# Works like a reset button: the network gets no notice, all processes and the memory are lost, the disk is kept.
lab_reboot() {
  needs_isolation reboot
  host_number "${1:-}"
  local host=$REPLY link
  host_process "$host"
  full_speed "$host"
  links_of "$host"
  processes_of "$host"
  host_process "$host"
  # Cuts the links before the processes end, so that no connection is closed. The old network may live on alone while it tries
  # to say goodbye.
  for link in "${links[@]}"; do ip link del "$link"; done
  kill -KILL "$REPLY"
  await_end_of_host "$host"
  rm -f "$folder/host$host/sshd.pid"
  new_boot "$host"
  start_host "$host"
  wait_for_host "$host"
  bridge_lines "$host" | ip -batch -
  [[ ! -d $folder/slurm ]] || ! is_node "$host" || start_slurmd "$host"
  [[ ! -d $folder/gridengine ]] || { ((host != 1)) || start_qmaster; ! is_node "$host" || start_execd "$host"; }
}

# Waits until its processes, `pids`, are gone.
await_end_of_host() {
  local tries
  for ((tries = 0; tries < 500; tries++)); do
    [[ -n $(ls -d "${pids[@]/#//proc/}" 2>/dev/null) ]] || return 0
    sleep 0.02
  done
  fail "host $1 did not go down"
}

lab_hide() { change_hidden hide "$@"; }
lab_unhide() { change_hidden unhide "$@"; }

# In an overlay's upper layer a character device 0,0 hides the file. There is one overlay for each folder of PATH that has the
# program.
change_hidden() {
  needs_isolation "$1"
  (($# == 3)) && [[ $3 != */* ]] || fail "$1 needs a host and the name of a program"
  host_number "$2"
  [[ ! -d $folder/host$REPLY/rootfs ]] || fail "host $REPLY has a root of its own: exec $2 rm takes programs from it"
  local host=$REPLY folders layer each
  mapfile -t folders < <(tr : '\n' <<<"$host_path" | xargs -n1 readlink -f | sort -u)
  for each in "${folders[@]}"; do
    [[ -e $each/$3 ]] || continue
    layer=$folder/host$host/hidden$each
    mkdir -p "$layer"
    rm -f "$layer/$3"
    [[ $1 == unhide ]] || mknod "$layer/$3" c 0 0
    chmod 755 "$layer"
    # Only one overlay at a time: the kernel allows only two on top of each other.
    in_host "$host" sh -c 'umount --lazy "$1" 2>/dev/null; mount -t overlay overlay -o "lowerdir=$2:$1" "$1"' sh "$each" "$layer"
  done
}

# Forgets both name and address: dtool and ssh add new keys under the one that they connected to.
lab_forget() {
  host_number "${1:-}"
  local known=$folder/home/.ssh/known_hosts address
  address=$(sed -n "${REPLY}p" "$folder/hosts")
  awk -v name="h$REPLY" -v address="$address" '{
    count = split($1, names, ",")
    for (i = 1; i <= count; i++) {
      gsub(/^\[|\].*$/, "", names[i])
      if (names[i] == name || names[i] == address) next
    }
    print
  }' "$known" >"$known.new"
  mv "$known.new" "$known"
}

lab_rekey() {
  host_number "${1:-}"
  rm -f "$folder/host$REPLY/host_key" "$folder/host$REPLY/host_key.pub"
  lab_restart_sshd "$1"
}

# Open sessions stay open, as with a real service.
lab_stop_sshd() {
  host_number "${1:-}"
  local pid_file=$folder/host$REPLY/sshd.pid tries user=''
  line_of "$pid_file"
  [[ -n $REPLY ]] || return 0
  host_number "$1"
  "exec_$mode" "$REPLY" sh -c 'kill "$(cat "$1")"' sh "$pid_file"
  for ((tries = 0; tries < 200; tries++)); do
    [[ -e $pid_file ]] || return 0
    sleep 0.02
  done
  fail "sshd of host $1 did not stop"
}

lab_restart_sshd() {
  host_number "${1:-}"
  local host=$REPLY tries user=''
  shift
  lab_stop_sshd "$host"
  "exec_$mode" "$host" "$folder/start_sshd" "$folder/host$host" "$@" || fail "sshd of host $host did not start with: $*"
  for ((tries = 0; tries < 200; tries++)); do
    [[ ! -s $folder/host$host/sshd.pid ]] || return 0
    sleep 0.02
  done
  fail "sshd of host $host did not start: see $folder/host$host/sshd.log"
}

# SPDX-License-Identifier: MIT
# Labs of namespaces (needs root): each host has its own network (networks.sh), processes, mounts and host name. Sourced by
# tests/lab. Killing a host's `unshare` ends its process namespace, then its network namespace, and then its link.
# shellcheck shell=bash disable=SC2154,SC2034

host_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

choose_mode() {
  [[ $mode == auto ]] || return 0
  if can_isolate; then
    mode=isolated
    return
  fi
  mode=plain
  warn 'no right to make namespaces: hosts are sshd processes on 127.x addresses; see "Without root" in docs/lab.md'
}

can_isolate() {
  ((EUID == 0)) && unshare --net --mount --uts --pid --ipc --fork --mount-proc \
    ip link add dtltry type veth peer name dtltry2 2>/dev/null
}

reserve_isolated() {
  reserve_network && network=$REPLY || return 1
  prefix_of "$network"
  dead=$REPLY.253
  hardware_of "$REPLY.254"
  ip -batch - <<END || return 1
link set dtl$network address $REPLY
addr add ${dead%.253}.254/22 dev dtl$network
neigh replace $dead lladdr 02:00:00:00:de:ad dev dtl$network nud permanent
END
  inner_network=''
  if [[ $behind == yes ]]; then
    reserve_network && inner_network=$REPLY || return 1
    prefix_of "$inner_network"
    ip route add unreachable "$REPLY.0/22" || return 1
  fi
  write_lab
}

start_isolated() {
  local i
  # The mount points of the hosts.
  mkdir -p /run/screen /run/sshd
  cp "$parts/host_init" "$parts/start_sshd" "$folder/"
  choose_addresses
  [[ $slurm == no ]] || make_slurm_folders
  [[ $gridengine == no ]] || make_gridengine_folders
  make_host_folders
  for ((i = 1; i <= count; i++)); do
    start_host "$i"
  done
  wait_for_sshd
  join_bridges
  tell_launcher_neighbours
  tell_bridges_ports
}

# Makes every host's files: its home with the launcher's key, /etc/hosts, and the mounts and the network for host_init.
make_host_folders() {
  local i names public_key hosts=() homes=() short=${name//_/-}
  short=${short:0:40}
  public_key=$(<"$folder/home/.ssh/id_ed25519.pub")
  hosts=("${addresses[@]}")
  for ((i = 1; i <= count; i++)); do
    [[ $shared_home == no || $i == 1 ]] || { mkdir -p "$folder/host$i" && ln -s ../host1/root "$folder/host$i/root"; }
    homes+=("$folder/host$i/root/.ssh")
    hosts[i]+=" h$i lab-$short-$i"
  done
  [[ $private_tmp == no ]] || mkdir -p -m 1777 "${homes[@]/%root\/.ssh/tmp}"
  mkdir -p "${homes[@]}"
  names=$(printf '%s\n' '127.0.0.1 localhost' '::1 localhost' "${hosts[@]:1}")
  unlock_root
  make_users
  for ((i = 1; i <= count; i++)); do
    echo "$public_key" >"$folder/host$i/root/.ssh/authorized_keys"
    # Debian's installer writes this line. It is here on purpose: it misleads programs that ask for their own address. Grid
    # Engine's daemons refuse to run with it.
    { [[ $gridengine == yes ]] || echo "127.0.1.1 lab-$short-$i"; echo "$names"; } >"$folder/host$i/etc_hosts"
    : >"$folder/host$i/sshd_config"
    give_to_users "$i"
    new_boot "$i"
    mounts_of "$i" >"$folder/host$i/fstab"
    root_of "$i"
    [[ -z $REPLY ]] || make_root "$i" "$REPLY"
    # Last, since a root may lie below /tmp.
    [[ $private_tmp == no ]] || echo "$folder/host$i/tmp /tmp none bind 0 0" >>"$folder/host$i/fstab"
    network_of "$i" >"$folder/host$i/network"
  done
  chmod 644 "$folder"/host*/etc_hosts
}

# Without PAM, sshd refuses a locked account, and root's is locked on some systems. The hosts see the account unlocked, still
# without a password.
unlock_root() {
  grep -q '^root:!' /etc/shadow 2>/dev/null || return 0
  sed 's/^root:[^:]*:/root:*:/' /etc/shadow >"$folder/shadow"
}

# Namespaces share the kernel's boot id, so each host is shown an id of its own, and another one after a reboot.
new_boot() {
  cat /proc/sys/kernel/random/uuid >"$folder/host$1/boot_id"
  chmod 644 "$folder/host$1/boot_id"
}

# The hosts' own users, for --user: ann, as whom one logs in, and ben. Their files are nobody's on this machine.
ann=64101 ben=64102
make_users() {
  [[ -n $user ]] || return 0
  [[ -e $folder/shadow ]] || cp /etc/shadow "$folder/shadow"
  printf '%s\n' "ann:*:1::::::" "ben:*:1::::::" >>"$folder/shadow"
  write_users /etc "$folder"
}

# The files in $2 that name the users of $1, an /etc that may lack them, and the lab's two.
write_users() {
  { cat "$1/passwd" 2>/dev/null || true; printf '%s\n' "ann:x:$ann:$ann::/root:/bin/bash" "ben:x:$ben:$ben::/home/ben:/bin/bash"; } >"$2/passwd"
  { cat "$1/group" 2>/dev/null || true; printf '%s\n' "ann:x:$ann:" "ben:x:$ben:"; } >"$2/group"
  chmod 644 "$2/passwd" "$2/group"
}

# Host $1's folders that are theirs.
give_to_users() {
  [[ -n $user ]] || return 0
  local here=$folder/host$1
  install -d -m 755 "$here/home"
  install -d -m 700 -o $ben -g $ben "$here/home/ben" "$here/home/ben/.ssh"
  install -m 600 -o $ben -g $ben "$here/root/.ssh/authorized_keys" "$here/home/ben/.ssh/"
  # One of them is slow, as with what conda and environment modules put there.
  (($1 == 1 || $1 < count)) || echo 'sleep 0.3' >"$here/root/.bashrc"
  chown -R "$ann:$ann" "$here/root/"
}

mounts_of() {
  local here=$folder/host$1 shared record
  for shared in ${shares[@]+"${shares[@]}"}; do
    [[ $shared == /root/* ]] || continue
    mkdir -p "$here$shared"
    echo "$shared $here$shared none bind 0 0"
  done
  echo "$here/root /root none rbind 0 0"
  echo "$here/etc_hosts /etc/hosts none bind 0 0"
  [[ ! -d $folder/slurm/etc ]] || echo "$folder/slurm/etc /etc/slurm none bind 0 0"
  [[ ! -d $folder/gridengine ]] || echo "$folder/gridengine/default /var/lib/gridengine/default none bind 0 0"
  echo "$here/boot_id /proc/sys/kernel/random/boot_id none bind 0 0"
  # With names of their own: mount --all skips those that it takes for mounted already.
  echo "lab-screens /run/screen tmpfs mode=1777 0 0"
  echo "lab-shm /dev/shm tmpfs mode=1777 0 0"
  echo "lab-var-tmp /var/tmp tmpfs mode=1777 0 0"
  for record in shadow passwd group; do [[ ! -e $folder/$record ]] || echo "$folder/$record /etc/$record none bind 0 0"; done
  [[ -z $user ]] || echo "$here/home /home none bind 0 0"
  # Logins of the lab are not recorded as this machine's.
  for record in /run/utmp /var/log/wtmp /var/log/btmp /var/log/lastlog; do
    [[ ! -e $record ]] || echo "/dev/null $record none bind 0 0"
  done
}

# Sets REPLY to the folder that is host $1's root; empty: this machine's root.
root_of() {
  local each
  REPLY=''
  for each in ${roots[@]+"${roots[@]}"}; do
    case $each in
      "$1"=* | "h$1"=*) REPLY=${each#*=} ;;
      *=*) ;;
      *) REPLY=$each ;;
    esac
  done
  [[ -z $REPLY ]] || REPLY=$(readlink -e "$REPLY") || fail "there is no folder for --root $each"
}

# Makes the root that logins of host $1 see, over folder $2, which stays unchanged. sshd itself uses this machine's root.
make_root() {
  local here=$folder/host$1 place
  for place in rootfs upper work upper/etc upper/root upper/proc upper/dev upper/sys upper/tmp upper/run upper/run/screen upper/run/lock; do
    mkdir -p -m 755 "$here/$place"
  done
  cp "$here/etc_hosts" "$here/upper/etc/hosts"
  [[ -z $user ]] || write_users "$2/etc" "$here/upper/etc"
  chmod 755 "$here" "$folder"
  echo "ChrootDirectory $here/rootfs" >"$here/sshd_config"
  {
    echo "lab-root $here/rootfs overlay lowerdir=$2,upperdir=$here/upper,workdir=$here/work 0 0"
    echo "lab-proc $here/rootfs/proc proc defaults 0 0"
    echo "$here/boot_id $here/rootfs/proc/sys/kernel/random/boot_id none bind 0 0"
    for place in dev sys root run/screen; do echo "/$place $here/rootfs/$place none rbind 0 0"; done
    if [[ $private_tmp == no ]]; then echo "/tmp $here/rootfs/tmp none rbind 0 0"; else echo "$here/tmp $here/rootfs/tmp none bind 0 0"; fi
  } >>"$here/fstab"
}

# The pid is on disk before the process becomes a host, so that it can be found even if the builder is killed at any instant.
start_host() {
  local here=$folder/host$1 short=${name//_/-}
  (
    identity_of "$BASHPID"
    echo "$REPLY" >"$here/pid"
    exec env -i PATH="$host_path" HOME=/root LANG=C.UTF-8 setsid unshare --net --mount --uts --pid --ipc --fork --kill-child --mount-proc \
      /bin/sh "$folder/host_init" "$here" "lab-${short:0:40}-$1" 7</proc/self/ns/net
  ) </dev/null >"$here/init.log" 2>&1 &
}

wait_for_sshd() {
  local i
  for ((i = 1; i <= count; i++)); do wait_for_host "$i"; done
}

wait_for_host() {
  local tries
  for ((tries = 0; ; tries++)); do
    [[ ! -s $folder/host$1/sshd.pid ]] || return 0
    line_of "$folder/host$1/pid"
    # The child itself writes the pid file, so it can be missing for a moment.
    if ((tries > 50)) && ! is_alive "$REPLY" || ((tries > 1500)); then
      cat "$folder/host$1/init.log" "$folder/host$1/sshd.log" >&2 2>/dev/null || true
      fail "host $1 of lab '$name' did not start"
    fi
    sleep 0.02
  done
}

end_isolated() {
  local pids=() spaces=() i
  end_slurm
  for ((i = 1; i <= count; i++)); do
    line_of "$folder/host$i/pid"
    ! is_alive "$REPLY" || pids+=("${REPLY%%:*}")
    end_delays "$i"
  done
  if ((${#pids[@]})); then
    hold_network_spaces
    kill -KILL "${pids[@]}" 2>/dev/null || true
  else
    rm -f "$folder/network_spaces"  # of an end that was cut short: the numbers may be another lab's by now
  fi
  end_processes_in_lab
  let_network_spaces_go
  remove_quota
  locked give_network_back
}

# All processes in a host's network belong to the lab. A network is known by its number, and the kernel reuses the number as
# soon as the network is gone. So the network is held open until the lab's processes have ended; otherwise another lab's would
# be taken for them.
hold_network_spaces() {
  local pid fd
  held=()
  for pid in "${pids[@]}"; do
    { exec {fd}<"/proc/$pid/ns/net"; } 2>/dev/null || continue
    if [[ "/proc/$BASHPID/fd/$fd" -ef /proc/self/ns/net ]]; then exec {fd}<&-; else held+=("$fd"); fi
  done
  for fd in ${held[@]+"${held[@]}"}; do readlink "/proc/$BASHPID/fd/$fd"; done >"$folder/network_spaces"
}

let_network_spaces_go() {
  local fd
  for fd in ${held[@]+"${held[@]}"}; do exec {fd}<&-; done
  held=()
}

# Sets `strays` to the processes in the lab's network namespaces.
find_strays() {
  strays=()
  [[ -s $folder/network_spaces ]] || return 0
  mapfile -t strays < <(find /proc -mindepth 3 -maxdepth 3 -path '/proc/[0-9]*/ns/net' -printf '%h %l\n' 2>/dev/null |
    grep -F -f "$folder/network_spaces" | sed 's,^/proc/\([0-9]*\)/.*,\1,')
}

end_processes_in_lab() {
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    find_strays
    ((${#strays[@]})) || break
    ((tries < 5)) || kill -KILL "${strays[@]}" 2>/dev/null || true
    sleep 0.05
  done
  ((${#strays[@]})) || rm -f "$folder/network_spaces"
}

# Reports what is left of the lab; false if anything is.
nothing_is_left() {
  local k link left=0
  find_strays
  ((${#strays[@]} == 0)) || { warn "still running: processes ${strays[*]}"; left=1; }
  for k in $network $inner_network; do
    for link in /sys/class/net/dtl"$k" /sys/class/net/dtl"$k"h*; do
      [[ ! -e $link ]] || { warn "still there: link ${link##*/}"; left=1; }
    done
    prefix_of "$k"
    [[ -z $(ip -4 route show table all root "$REPLY.0/22") ]] || { warn "still there: a route to $REPLY.0/22"; left=1; }
  done
  ! grep -F " $folder/" /proc/self/mountinfo >&2 || { warn 'still mounted: the above'; left=1; }
  ((left == 0))
}

# SPDX-License-Identifier: MIT
# Labs without root: one sshd per host, run by this user, on 127.x addresses and a high port. Sourced by tests/lab. Every login
# has the HOME and the screens of its host, but hosts share this machine's processes, names, network and /tmp.
# shellcheck shell=bash disable=SC2154,SC2034

reserve_plain() {
  [[ $behind == no && -z $quota ]] || { warn '--behind and --quota need namespaces'; return 1; }
  local k
  port=22022
  for ((k = 0; k < 64; k++)); do
    # The lab's folder is made before its network is taken, all under one lock.
    ! grep -qsx "network=$k" "$labs"/*/lab.conf || continue
    address_of_plain "$k" 1
    ! (exec 3<>"/dev/tcp/$REPLY/$port") 2>/dev/null || continue
    network=$k
    write_lab
    return 0
  done
  warn "port $port is taken on every address"
  return 1
}

# As address_of: 250 hosts for each value of the third octet; the second octet separates users.
address_of_plain() { REPLY=127.$((16 + EUID % 200)).$(($1 * 4 + ($2 - 1) / 250)).$((($2 - 1) % 250 + 1)); }

start_plain() {
  local i
  ((EUID != 0)) || mkdir -p /run/sshd
  cp "$parts/plain_login" "$parts/start_sshd" "$folder/"
  addresses=('')
  # The lab exists while this process lives, whatever happens to its servers.
  setsid sleep infinity </dev/null >/dev/null 2>&1 &
  identity_of $!
  local keeper=$REPLY
  for ((i = 1; i <= count; i++)); do
    address_of_plain "$network" "$i"
    addresses+=("$REPLY")
    mkdir -p -m 700 "$folder/host$i/root/.ssh" "$folder/host$i/screens"
    echo "$keeper" >"$folder/host$i/pid"
    cp "$folder/home/.ssh/id_ed25519.pub" "$folder/host$i/root/.ssh/authorized_keys"
    plain_configuration "$i" >"$folder/host$i/sshd_config"
    exec_plain "$i" "$folder/start_sshd" "$folder/host$i"
  done
  for ((i = 1; i <= count; i++)); do wait_for_plain "$i"; done
  address_of_plain "$network" 1
  range_of "${REPLY%.*}" 1 "$count"
  range=${REPLY//]/]:$port}
}

plain_configuration() {
  local here=$folder/host$1
  cat <<END
ListenAddress ${addresses[$1]}:$port
AuthorizedKeysFile $here/root/.ssh/authorized_keys
StrictModes no
PermitRootLogin yes
ForceCommand $folder/plain_login
SetEnv "HOME=$here/root" "SCREENDIR=$here/screens" "DTOOL_LAB_HOST=$here"
END
}

wait_for_plain() {
  local tries
  for ((tries = 0; tries < 500; tries++)); do
    [[ ! -s $folder/host$1/sshd.pid ]] || return 0
    sleep 0.02
  done
  cat "$folder/host$1/sshd.log" >&2
  fail "host $1 of lab '$name' did not start"
}

exec_plain() {
  local here=$folder/host$1
  shift
  env -i -C "$here/root" HOME="$here/root" USER="$(id -un)" SHELL=/bin/bash LANG=C.UTF-8 TERM="${TERM:-dumb}" PATH="$host_path" \
    SCREENDIR="$here/screens" DTOOL_LAB_HOST="$here" "$@"
}

# Sets `pids` to the lab's processes: its servers with their children, and processes with a host of the lab in their
# environment.
find_plain_processes() {
  local file server
  pids=()
  for file in "$folder"/host*/sshd.pid; do
    line_of "$file"
    server=$REPLY
    # sshd overwrites its environment, but its title names its configuration.
    [[ -n $server ]] && grep -qzF "$folder/host" "/proc/$server/cmdline" 2>/dev/null || continue
    mapfile -O "${#pids[@]}" -t pids < <(echo "$server"; pgrep -P "$server")
  done
  mapfile -O "${#pids[@]}" -t pids < <(grep -lz "^DTOOL_LAB_HOST=$folder/host" /proc/[0-9]*/environ 2>/dev/null | sed 's,^/proc/\([0-9]*\)/.*,\1,')
}

end_plain() {
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    find_plain_processes
    ((${#pids[@]})) || break
    kill -KILL "${pids[@]}" 2>/dev/null || true
    sleep 0.02
  done
  line_of "$folder/host1/pid"
  ! is_alive "$REPLY" || kill "${REPLY%%:*}"
  ((${#pids[@]} == 0)) || { warn "still running: processes ${pids[*]}"; return 1; }
}

# SPDX-License-Identifier: MIT
# The launcher's side of a lab: a home folder with keys, known hosts and an ssh configuration; sourced by tests/lab.
# shellcheck shell=bash disable=SC2154,SC2034

make_home() {
  mkdir -p "$folder/home/.ssh" "$folder/home/bin"
  ssh-keygen -q -t ed25519 -N '' -C "lab-$name" -f "$folder/home/.ssh/id_ed25519"
  wrap ssh
  wrap scp
  wrap sftp
}

# OpenSSH finds the home folder in the password database, not in $HOME: these wrappers make it read the lab's configuration.
wrap() {
  local program
  program=$(command -v "$1") || return 0
  printf '#!/bin/sh\nexec %q -F %q "$@"\n' "$program" "$folder/home/.ssh/config" >"$folder/home/bin/$1"
  chmod +x "$folder/home/bin/$1"
}

# Writes the files that name the hosts; `addresses` has one address per host.
write_home() {
  local i key ssh=$folder/home/.ssh
  for ((i = 1; i <= count; i++)); do
    line_of "$folder/host$i/host_key.pub"
    key=${REPLY% *}
    if ((port == 22)); then
      echo "h$i,${addresses[i]} $key"
    else
      echo "[h$i]:$port,[${addresses[i]}]:$port $key"
    fi
  done >"$ssh/known_hosts"
  for ((i = 1; i <= count; i++)); do
    printf 'Host h%d\n  HostName %s\n' "$i" "${addresses[i]}"
    [[ $behind == no || $i == 1 ]] || echo '  ProxyJump h1'
  done >"$ssh/config"
  printf '%s\n' 'Host *' "  User ${user:-$(id -un)}" "  Port $port" "  IdentityFile $ssh/id_ed25519" '  IdentitiesOnly yes' \
    "  UserKnownHostsFile $ssh/known_hosts" '  GlobalKnownHostsFile /dev/null' '  StrictHostKeyChecking yes' >>"$ssh/config"
  printf '%s\n' "${addresses[@]:1}" >"$folder/hosts.new"
  if ((port == 22)); then
    printf '%s slots=1\n' "${addresses[@]:1}" >"$folder/hostfile"
  else
    printf "%s:$port slots=1\n" "${addresses[@]:1}" >"$folder/hostfile"
  fi
  write_lab
  mv "$folder/hosts.new" "$folder/hosts"
}

# Prints lines for `eval "$(tests/lab env)"`.
print_environment() {
  local hosts suffix='' outer_path=${PATH#"$folder/home/bin:"}
  ((port == 22)) || suffix=":$port"
  hosts=$(sed "s/\$/$suffix/" "$folder/hosts" | paste -sd,)
  printf 'export %s=%q\n' HOME "$folder/home" PATH "$folder/home/bin:$outer_path" \
    DTOOL_LAB "$name" DTOOL_LAB_FOLDER "$folder" DTOOL_LAB_MODE "$mode" DTOOL_LAB_HOSTS "$hosts" DTOOL_LAB_RANGE "$range" \
    DTOOL_LAB_HOSTFILE "$folder/hostfile" DTOOL_LAB_DEAD "$dead"
  [[ ! -e $folder/slurm/etc/slurm.conf ]] || printf 'export SLURM_CONF=%q\n' "$folder/slurm/etc/slurm.conf"
  # Without this, tests could use the keys that the user's own agent holds.
  echo 'unset SSH_AUTH_SOCK SSH_AGENT_PID'
}

# Sets `range` to the addresses $1, a prefix of three octets, blocks of 250 hosts, numbers $2 to $3, as pdsh and dtool write ranges.
range_of() {
  local first=$2 last=$3 octets=$1 block low high numbers pieces=()
  for ((block = (first - 1) / 250; block <= (last - 1) / 250; block++)); do
    low=$((block == (first - 1) / 250 ? (first - 1) % 250 + 1 : 1))
    high=$((block == (last - 1) / 250 ? (last - 1) % 250 + 1 : 250))
    ((low == high)) && numbers=$low || numbers="[$low-$high]"
    pieces+=("${octets%.*}.$((${octets##*.} + block)).$numbers")
  done
  REPLY=$(IFS=,; echo "${pieces[*]}")
}

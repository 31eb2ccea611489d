# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Checks, on machine 0, whether mpirun exists and can start what it needs on the other machines, through its own ssh. Defined
# before: answer, lack_of (from ready.sh); ssh_words (array, by place: the words after ssh), host_names (array, by place: the
# user's names), install_hint. Answers the networks (CIDR) between machine 0 and the others.
# Numbers by check_mpi: $1.
bin='' version='' answers=''

# Runs on another machine: how it is reached, which orted it has, and its addresses.
# shellcheck disable=SC2016
ask_about='echo "reached $SSH_CONNECTION"
PATH=$bin:$PATH
if type -P orted > /dev/null; then mpirun --version 2> /dev/null | sed -n "s/.*(Open MPI) /orted /p"; fi
ip -o -4 addr show 2> /dev/null | sed -n "s/.* inet \([^ ]*\) .*/has \1/p"'

ask() {  # $1: place
  local words agent
  read -ra agent <<< "${OMPI_MCA_plm_rsh_agent:-ssh} ${OMPI_MCA_plm_rsh_args:--o BatchMode=yes -o ConnectTimeout=15}"
  read -ra words <<< "${ssh_words[$1]}"
  printf 'bin=%q\n%s\n' "$bin" "$ask_about" | timeout 30 "${agent[@]}" "${words[@]}" bash > "$answers/$1" 2>&1
}

# Prints the network of $2 (an address with its prefix length, CIDR) if that address is $1.
network_of() {  # $1: address, $2: CIDR
  [ "${2%/*}" = "$1" ] || return 0
  local octet='(0|[1-9][0-9]{0,2})' parts number length
  # The other machine reported it.
  [[ $2 =~ ^$octet\.$octet\.$octet\.$octet/(0|[1-9]|[12][0-9]|3[0-2])$ ]] || return 0
  parts=("${BASH_REMATCH[@]:1}") length=${BASH_REMATCH[5]}
  number=$(((parts[0] << 24 | parts[1] << 16 | parts[2] << 8 | parts[3]) & ~((1 << (32 - length)) - 1)))
  echo "$((number >> 24 & 255)).$((number >> 16 & 255)).$((number >> 8 & 255)).$((number & 255))/$length"
}

# Prints the networks of both ends of the connection to $1 (place), `unknown` if something is between the two, and answers
# machine 0's address in it.
networks_to() {
  local client server cidr of_client='' of_server=''
  read -r _ client _ server _ < <(grep '^reached ' "$answers/$1")
  for cidr in $(ip -o -4 addr show 2> /dev/null | sed -n 's/.* inet \([^ ]*\) .*/\1/p'); do
    : "${of_client:=$(network_of "$client" "$cidr")}"
  done
  while read -r _ cidr; do
    : "${of_server:=$(network_of "$server" "$cidr")}"
  done < <(grep '^has ' "$answers/$1")
  [ -z "$of_client" ] || answer mpi_address "$client"
  if [ -n "$of_client" ] && [ -n "$of_server" ]; then
    printf '%s\n' "$of_client" "$of_server"
  else
    echo unknown
  fi
}

# Sets lack to the reason why mpirun cannot use the machine $1 (place), or to nothing; and hint.
judge() {
  local name=${host_names[$1]} there
  if ! grep -q '^reached ' "$answers/$1"; then
    lack="mpirun's own ssh from ${host_names[0]} does not reach $name: $(grep -v '^Warning: Permanently' "$answers/$1" | tail -n 1 | tr -d '\r')"
    hint="on ${host_names[0]}, 'ssh ${ssh_words[$1]}' must work without a question: a key that $name takes, and ${name}'s host key in known_hosts; --launcher ssh needs neither"
    return
  fi
  there=$(sed -n 's/^orted //p' "$answers/$1")
  if [ -z "$there" ]; then
    lack="orted, which belongs to mpirun, is not there on $name"
    hint=$install_hint
  elif [ "$there" != "$version" ]; then
    lack="${host_names[0]} has Open MPI $version and $name has $there"
    hint='mpirun wants the same on all hosts'
  fi
}

check_mpi() {
  local place mpirun lack='' hint=''
  if ! mpirun=$(type -P mpirun); then
    lack_of 'mpirun is not there' "$install_hint"
    return
  fi
  version=$("$mpirun" --version 2>&1 < /dev/null | sed -n 's/.*(Open MPI) //p')
  if [ -z "$version" ]; then
    lack_of "$mpirun is not Open MPI's: it says $("$mpirun" --version 2>&1 < /dev/null | head -n 1)" "$install_hint"
    return
  fi
  bin=${mpirun%/*}
  answers=$(mktemp -d) || return
  for ((place = 1; place < ${#ssh_words[@]}; place++)); do
    ask "$place" &
    if ((place >= 64)); then wait -n; fi
  done
  wait
  for ((place = 1; place < ${#ssh_words[@]}; place++)); do
    [ -n "$lack" ] || judge "$place"
  done
  if [ -n "$lack" ]; then
    lack_of "$lack" "$hint"
  else
    for ((place = 1; place < ${#ssh_words[@]}; place++)); do networks_to "$place"; done | sort -u |
      while read -r network; do answer mpi_network "$network"; done
  fi
  rm -rf "$answers"
}
check_mpi

# SPDX-License-Identifier: MIT
# The networks of isolated labs: a bridge for each, the hosts' addresses and links, and the hardware addresses that neighbours
# are told. Sourced by tests/lab.
# shellcheck shell=bash disable=SC2154,SC2034

# Network k of 128 is a /22 of 198.18.0.0/15, the range for measuring network devices, which is not routed.
prefix_of() { REPLY=198.$((18 + $1 / 64)).$(($1 % 64 * 4)); }

# Sets REPLY to host $2's address in network $1: 250 hosts for each value of the third octet, none ending in .0 or .255.
address_of() {
  local block=$((($2 - 1) / 250)) last=$((($2 - 1) % 250 + 1))
  prefix_of "$1"
  REPLY=${REPLY%.*}.$((${REPLY##*.} + block)).$last
}

# Takes the first network without a bridge and without a route on this machine; sets REPLY to its number.
reserve_network() {
  local k
  for ((k = 0; k < 128; k++)); do
    [[ ! -e /sys/class/net/dtl$k ]] || continue
    prefix_of "$k"
    [[ -z $(ip -4 route show table all root "$REPLY.0/22"; ip -4 route show match "$REPLY.0/22" | grep -v ^default) ]] || continue
    ip link add "dtl$k" type bridge || continue
    ip link set "dtl$k" alias "$(link_mark)$folder" up || return 1
    REPLY=$k
    return 0
  done
  warn 'no free network left in 198.18.0.0/15'
  return 1
}

choose_addresses() {
  local i outer
  addresses=('')
  for ((i = 1; i <= count; i++)); do
    address_of "$network" "$i"
    [[ -z $inner_network || $i == 1 ]] || address_of "$inner_network" "$i"
    addresses+=("$REPLY")
  done
  prefix_of "$network"
  range_of "$REPLY" 1 "$count"
  range=$REPLY
  [[ -n $inner_network && $count -gt 1 ]] || return 0
  outer=${addresses[1]}
  prefix_of "$inner_network"
  range_of "$REPLY" 2 "$count"
  range=$outer,$REPLY
}

network_of() {
  echo 'link set lo up'
  if [[ -z $inner_network || $1 == 1 ]]; then
    link_lines eth0 "dtl${network}h$1" "${addresses[$1]}"
  fi
  if [[ -n $inner_network ]]; then
    address_of "$inner_network" "$1"
    if (($1 == 1)); then link_lines eth1 "dtl${inner_network}h1" "$REPLY"; else link_lines eth0 "dtl${inner_network}h$1" "$REPLY"; fi
  fi
  neighbour_lines "$1"
}

# A network card keeps its hardware address when its host is rebooted.
link_lines() {
  hardware_of "$3"
  printf '%s\n' "link add $1 address $REPLY type veth peer name $2 netns /proc/self/fd/7" "addr add $3/22 dev $1" "link set $1 up"
}

# Sets REPLY to the hardware address of the card with address $1.
hardware_of() {
  local octets
  IFS=. read -ra octets <<<"$1"
  printf -v REPLY '02:00:%02x:%02x:%02x:%02x' "${octets[@]}"
}

# The kernel has one table of learnt hardware addresses for all networks of this machine, with gc_thresh3 entries, usually 1024.
# With more hosts than this, most packets would find no room in it. Addresses that are told do not count.
most_learnt=250

# Prints lines that tell host $1 the hardware addresses of the launcher and of host 1, to which a run's machines report; host 1
# gets those of all hosts.
neighbour_lines() {
  local i card=eth0
  ((count > most_learnt)) || return 0
  [[ -n $inner_network && $1 != 1 ]] || { prefix_of "$network"; neighbour_line "$REPLY.254" eth0; }
  if (($1 == 1)); then
    [[ -z $inner_network ]] || card=eth1
    for ((i = 2; i <= count; i++)); do neighbour_line "${addresses[i]}" "$card"; done
  elif [[ -z $inner_network ]]; then
    neighbour_line "${addresses[1]}" eth0
  else
    address_of "$inner_network" 1
    neighbour_line "$REPLY" eth0
  fi
}

neighbour_line() {
  hardware_of "$1"
  echo "neigh replace $1 lladdr $REPLY dev $2 nud permanent"
}

# Does the same for the launcher.
tell_launcher_neighbours() {
  local i last=$count
  ((count > most_learnt)) || return 0
  [[ -z $inner_network ]] || last=1
  for ((i = 1; i <= last; i++)); do neighbour_line "${addresses[i]}" "dtl$network"; done | ip -batch -
}

# A bridge sends a packet to all its ports until it has heard from the packet's receiver. A host that need not ask for a
# hardware address is heard only after its first packet. With a thousand hosts these are a million copies.
tell_bridges_ports() {
  local i
  ((count > most_learnt)) || return 0
  for ((i = 1; i <= count; i++)); do
    hardware_of "${addresses[i]}"
    [[ -n $inner_network && $i != 1 ]] || echo "fdb replace $REPLY dev dtl${network}h$i master static"
    [[ -z $inner_network || $i == 1 ]] || echo "fdb replace $REPLY dev dtl${inner_network}h$i master static"
  done | bridge -batch -
}

join_bridges() {
  local i
  for ((i = 1; i <= count; i++)); do bridge_lines "$i"; done | ip -batch -
}

bridge_lines() {
  [[ -n $inner_network && $1 != 1 ]] || echo "link set dev dtl${network}h$1 master dtl$network up"
  [[ -z $inner_network ]] || echo "link set dev dtl${inner_network}h$1 master dtl$inner_network up"
}

# Runs under the lock, so that no new lab takes the network before it is checked for leftovers. Only interfaces with this lab's
# mark are removed: a lab that could not be ended at first may meet another lab's network the second time.
give_network_back() {
  is_ours "$network" || network=''
  is_ours "$inner_network" || inner_network=''
  remove_links
  nothing_is_left
}

is_ours() {
  [[ -n $1 ]] || return 1
  line_of "/sys/class/net/dtl$1/ifalias"
  [[ $REPLY == "$(link_mark)$folder" ]]
}

remove_links() {
  local k link
  for k in $network $inner_network; do
    for link in /sys/class/net/dtl"$k"h*; do
      [[ ! -e $link ]] || echo "link del ${link##*/}"
    done
    [[ ! -e /sys/class/net/dtl$k ]] || echo "link del dtl$k"
  done | ip -force -batch - 2>/dev/null || true
  [[ -z $inner_network ]] || { prefix_of "$inner_network"; ip route del unreachable "$REPLY.0/22" 2>/dev/null || true; }
}

# The mark of our bridges, followed by the lab's folder: a container or chroot that shares our network has other folders.
link_mark() { echo "dtool-lab $(stat --format %d:%i "$labs") "; }

# Removes bridges whose lab's folder is gone, as after `rm -r /run/dtool-lab/NAME`.
clear_stale_links() {
  local alias mark network inner_network=''
  mark=$(link_mark)
  for alias in /sys/class/net/dtl*/ifalias; do
    line_of "$alias"
    [[ $REPLY == "$mark"* && ! -d ${REPLY#"$mark"} ]] || continue
    network=${alias#/sys/class/net/dtl} network=${network%/ifalias}
    remove_links
    prefix_of "$network"
    ip route del unreachable "$REPLY.0/22" 2>/dev/null || true
  done
}

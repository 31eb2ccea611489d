# shellcheck shell=bash disable=SC2034,SC2154
# Finds ports to listen on. It stands before the batch script of a scheduler's job, which needs one.
# Numbers by the kernel: hex.

# Prints the ports of this host with a listener, each between blanks.
listening_ports() {
  local hex
  cat /proc/net/tcp /proc/net/tcp6 2> /dev/null | awk '$4 == "0A" { n = split($2, a, ":"); print a[n] }' |
    { while read -r hex; do printf ' %s' $((16#$hex)); done; echo ' '; }
}
# Sets free to a port not in taken, below the kernel's range for outgoing connections, so that none of those takes it meanwhile.
find_free_port() {
  local try
  for ((try = 0; try < 200; try++)); do
    free=$((20000 + RANDOM % 12000))
    [[ $taken == *" $free "* ]] || break
  done
}

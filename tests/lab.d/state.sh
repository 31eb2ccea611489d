# SPDX-License-Identifier: MIT
# The folders of labs, their owners, and which labs are stale. Sourced by tests/lab.
# shellcheck shell=bash disable=SC2154,SC2034

# Each lab has a folder below this one. Root's is fixed, so that all of root's labs see each other.
if [[ -n ${DTOOL_LAB_ROOT:-} ]]; then labs=$DTOOL_LAB_ROOT
elif ((EUID == 0)); then labs=/run/dtool-lab
elif [[ -n ${XDG_RUNTIME_DIR:-} ]]; then labs=$XDG_RUNTIME_DIR/dtool-lab
else labs=/tmp/dtool-lab-$EUID
fi

warn() { printf 'lab: %s\n' "$*" >&2; }
fail() { warn "$*"; exit 2; }

# Seconds since $1, a value of EPOCHREALTIME.
elapsed() {
  local now=${EPOCHREALTIME/[.,]/} then=${1/[.,]/}
  printf '%d.%06d' $(((now - then) / 1000000)) $(((now - then) % 1000000))
}

# Sets REPLY to PID:START, which identifies a process even after its pid is reused; false if there is no such process.
identity_of() {
  local stat='' fields
  IFS= read -rd '' stat 2>/dev/null <"/proc/$1/stat" || [[ -n $stat ]] || return 1
  read -ra fields <<<"${stat##*) }"
  [[ ${fields[0]} != Z ]] || return 1
  REPLY=$1:${fields[19]}
}

is_alive() { [[ -n $1 ]] && identity_of "${1%%:*}" && [[ $REPLY == "$1" ]]; }

# The first line of a file, or nothing.
line_of() { REPLY=''; [[ ! -r $1 ]] || IFS= read -r REPLY <"$1" || true; }

# Runs "$@" while holding the lock for claiming a name, for taking and giving back a network, and for clearing stale labs.
locked() {
  local lock status
  if [[ ${holds_lock:-no} == yes ]]; then
    "$@"
    return
  fi
  exec {lock}>"$labs/.lock"
  flock "$lock"
  holds_lock=yes
  "$@"
  status=$?
  holds_lock=no
  exec {lock}>&-
  return "$status"
}

# Makes the lab's folder and owns it until finish_claim, so that a partial lab is stale once this process is gone.
claim_lab() {
  mkdir -p -m 755 "$labs"
  [[ -O $labs ]] || fail "$labs belongs to another user: set DTOOL_LAB_ROOT"
  locked claim_folder
}

claim_folder() {
  clear_stale
  mkdir -m 755 "$folder" 2>/dev/null || fail "lab '$name' is already up: tests/lab down --name $name"
  identity_of $$
  echo "$REPLY" >"$folder/owner"
  umask 077
  if ! "reserve_$mode"; then
    end_lab || true
    fail "lab '$name' could not be given a network"
  fi
}

# Hands the lab over to its owner, and starts the process that ends the lab when the owner ends.
finish_claim() {
  echo "${owner:-nobody}" >"$folder/owner"
  [[ -n $owner ]] || return 0
  setsid "$parts/../lab" reap "$name" "$owner" </dev/null >"$folder/reaper.log" 2>&1 &
  identity_of $!
  echo "$REPLY" >"$folder/reaper"
}

# Waits until the owner is gone, then ends the lab if it is still this owner's.
reap() {
  trap '' HUP INT
  while is_alive "$1"; do sleep 1; done
  line_of "$folder/owner"
  [[ $REPLY != "$1" ]] || end_lab
}

# A lab is stale if its owner is gone, or if it has no owner and its hosts are gone (a reboot).
is_stale() {
  line_of "$1/owner"
  if [[ $REPLY != nobody ]]; then
    ! is_alive "$REPLY"
  else
    line_of "$1/host1/pid"
    ! is_alive "$REPLY"
  fi
}

clear_stale() {
  local each
  for each in "$labs"/*/; do
    [[ -d $each ]] && is_stale "${each%/}" || continue
    (
      folder=${each%/} name=$(basename "$each")
      end_lab && warn "cleared stale lab '$name'"
    ) || warn "stale lab $each could not be cleared"
  done
  rm_gone
  clear_stale_links
}

# What is left of labs whose removal was cut short.
rm_gone() {
  local each
  for each in "$labs"/.gone-*; do
    [[ -d $each ]] && ! identity_of "${each##*-}" || continue
    rm -rf --one-file-system "$each"
  done
}

# The processes that keep connections to this lab's hosts for later dtool commands run beside the lab, not in its hosts.
end_keepers() {
  local pids tries
  for ((tries = 0; tries < 100; tries++)); do
    mapfile -t pids < <(pgrep -f "^dtool keep_connections $folder/")
    ((${#pids[@]})) || return 0
    ((tries)) || kill "${pids[@]}" 2>/dev/null || true
    sleep 0.05
  done
  warn "still running: dtool's keepers ${pids[*]}"
  return 1
}

# Ends the lab in $folder, complete or partial. Two processes may try at once: the second waits and finds it gone.
end_lab() {
  local lock
  exec {lock}<"$folder" || return 0
  # A process that holds the lock of all labs must not wait for a lab whose end may wait for that lock: that lab is being ended
  # anyway.
  if [[ ${holds_lock:-no} == yes ]]; then flock --nonblock "$lock" || { exec {lock}<&-; return 0; }; else flock "$lock"; fi
  if [[ -e $folder/owner ]]; then
    line_of "$folder/reaper"
    if [[ ${REPLY%%:*} != "$$" ]] && is_alive "$REPLY"; then kill "${REPLY%%:*}" 2>/dev/null || true; fi
    read_lab "$folder"
    end_keepers || { exec {lock}<&-; return 1; }
    [[ -z ${mode:-} ]] || "end_$mode" || { exec {lock}<&-; return 1; }
    # Under another name first: a removal that is cut short would leave a lab without its owner, which nobody would end.
    mv "$folder" "$labs/.gone-$name-$$"
    rm -rf --one-file-system "$labs/.gone-$name-$$"
  fi
  exec {lock}<&-
}

# Reads the file that write_lab wrote: mode, count, range, network numbers.
read_lab() {
  mode='' count=0 range='' network='' inner_network='' dead='' port=22 login=no user=''
  # shellcheck disable=SC1091
  [[ ! -e $1/lab.conf ]] || source "$1/lab.conf"
}

write_lab() {
  printf '%s=%q\n' mode "$mode" count "$count" range "$range" network "$network" inner_network "$inner_network" \
    dead "$dead" port "$port" behind "$behind" login "$login" user "$user" >"$folder/lab.conf"
}

open_lab() {
  [[ -e $folder/hosts ]] || fail "no lab '$name' is up: tests/lab up 3 --name $name"
  read_lab "$folder"
}

# Sets REPLY to the number of the host $1: 3, h3 or its address.
host_number() {
  local number=${1#h} line
  if [[ ! $number =~ ^[1-9][0-9]*$ ]]; then
    line=$(grep -nxF -- "${1:-}" "$folder/hosts") || fail "lab '$name' has no host '${1:-}'"
    number=${line%%:*}
  fi
  ((number <= count)) || fail "lab '$name' has $count hosts, no host '$1'"
  REPLY=$number
}

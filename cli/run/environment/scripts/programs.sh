# shellcheck shell=bash disable=SC2154
# Looks whether the host's programs can do what dtool's scripts ask of them, which is tried: busybox has many of the same names
# and fewer options. check.sh and configurable.sh use it. Defined before: answer, wants_rsync, wants_session (yes or no), and
# tries_all (yes: everything; no: the few programs without which a run would go wrong and no script could say why).
unfit=''
lack() {
  answer lack "$1"
  unfit=yes
}

# $1: the option in question, $2...: a program and its arguments
try() {
  hash "$2" 2> /dev/null || return  # told by look_for
  "${@:2}" > /dev/null 2>&1 < /dev/null && return
  answer unfit "$2 $1"
  unfit=yes
}

look_for() {
  local program
  for program; do command -v "$program" > /dev/null || lack "$program"; done
}

# The host's package manager: the one of the system's own kind, else the first that is there.
find_package_manager() {
  local name kind ID='' ID_LIKE='' wanted=''
  # shellcheck source=/dev/null
  # runs: the host's own system wrote it, as all programs there.
  . /etc/os-release 2> /dev/null
  for kind in $ID $ID_LIKE; do
    case $kind in
      debian | ubuntu) wanted='apt-get' ;;
      fedora | rhel | centos) wanted='dnf yum' ;;
      suse | opensuse | sles) wanted='zypper' ;;
      alpine) wanted='apk' ;;
      arch) wanted='pacman' ;;
      *) continue ;;
    esac
    break
  done
  for name in $wanted apt-get dnf yum zypper apk pacman; do
    if command -v "$name" > /dev/null; then
      answer package_manager "$name"
      return
    fi
  done
}

# Where the file system of ~/.dtool, or of the home folder that it would be in, cannot lock files, one launcher could not
# keep out of another's way. Nothing is left behind.
try_locks() {
  local place=$HOME/.dtool said file
  [ -d "$place" ] || place=$HOME
  file=$place/.lock_trial.$$$RANDOM
  { exec 9> "$file"; } 2> /dev/null || return 0  # a home that cannot be written is told as that
  if ! said=$(flock -w 5 9 2>&1) && hash flock 2> /dev/null; then
    if flock -n 9 2> /dev/null; then
      answer unfit 'flock -w'
    else
      answer no_locks "$place: ${said##*: }"
    fi
    unfit=yes
  fi
  exec 9>&-
  rm -f "$file"
}

find_lacks() {
  look_for flock tail awk grep sed find xargs stat sort comm cmp sha256sum timeout mktemp readlink tr head
  [ "$wants_rsync" = no ] || look_for rsync
  if [ "$wants_session" = yes ] && ! command -v screen > /dev/null && ! command -v tmux > /dev/null; then
    look_for setsid
    answer no_terminal yes
  fi
  try --pid tail -n 0 -s 0.2 --pid=$$ /dev/null
  try -z grep -Hsz . /proc/self/environ
  try -printf find / -maxdepth 0 -printf '%p'
  if [ "$tries_all" = yes ]; then
    try -z sed -z p /dev/null
    try -z sort -zmu /dev/null
    try -z comm -z -23 /dev/null /dev/null
    try -0 xargs -0r true
    try -c stat -c '%d %i %.9Z' /
    try 'SECONDS PROGRAM' timeout 5 true
    try -v awk -v a=1 'BEGIN { exit a != 1 }'
    try -p mktemp -u -p /tmp
    try_locks
    # It says so of a folder for its sockets that it cannot make, for one.
    if [ "$wants_session" = yes ] && hash screen 2> /dev/null; then
      said=$(screen -ls 2>&1)
      [[ $said == *[Ss]ocket* ]] || { answer bad_screen "${said##*$'\n'}"; unfit=yes; }
    fi
  fi
  [ -z "$unfit" ] || find_package_manager
}

# shellcheck shell=bash disable=SC2154
# What `dtool check` tells of a host beyond what a run needs to know; check.sh follows. Defined before: answer, code_place
# (a folder that may be missing), machines (their number), and what programs.sh has and wants.
answer user "$(id -un)"
find_package_manager
answer shell "$(getent passwd "$(id -un)" | cut -d : -f 7)"
# shellcheck source=/dev/null
# runs: the system's own file.
answer system "$(. /etc/os-release 2> /dev/null; echo "${PRETTY_NAME:-$(uname -s)}"), $(uname -m)"
answer bash "${BASH_VERSION%%(*}"
# the first word of its --version that looks like a number
version_of() {
  command -v "$1" > /dev/null || return
  answer "$1" "$("$1" --version < /dev/null 2>&1 | grep -Eom1 '[0-9]+\.[0-9][0-9.]*' | head -n 1)"
}
version_of screen
[ "$wants_session" = no ] || hash screen 2> /dev/null || ! hash tmux 2> /dev/null || answer tmux "$(tmux -V 2> /dev/null | tr -cd '0-9.a-z ')"
version_of rsync
[ "$machines" -le 1 ] || command -v ip > /dev/null || answer no_ip yes

answer cores "$(nproc 2> /dev/null)"
while read -r name kib _; do
  case $name in
    MemTotal:) answer memory_kib "$kib" ;;
    MemAvailable:) answer free_memory_kib "$kib" ;;
  esac
done < /proc/meminfo
# where the code will be, or the nearest folder above that is there already
place=$code_place
until [ -z "$place" ] || [ -d "$place" ]; do place=${place%/*}; done
answer free_code_kib "$(df -Pk "${place:-/}" 2> /dev/null | awk 'NR == 2 { print $4 }')"
free=$(df -Pk "$HOME" 2> /dev/null | awk 'NR == 2 { print $4 }')
answer free_kib "${free:-0}"

if command -v nvidia-smi > /dev/null; then
  if said=$(timeout 20 nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>&1 < /dev/null); then
    while IFS=, read -r name memory driver; do
      answer gpu "$name,$memory"
      answer driver "${driver# }"
    done <<< "$said"
  else
    answer gpu_fault "$said"
  fi
fi

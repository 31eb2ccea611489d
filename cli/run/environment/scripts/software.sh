# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# Prepares a host's software: environment modules, and the environment of --env_activate_path. environment.sh and ready.sh use
# it. Defined before: modules (array), activate (a path, or empty), and the function fault, which gets a word for what failed
# ($1) and the reason.

# Foreign code runs between begin_trial and end_trial: it may end the shell, or leave `set -e` behind.
begin_trial() {  # $1: a word for what is tried, $2: its name
  trying=$1 name_of_trial=$2 shell_options=$(set +o) own_trap=$(trap -p EXIT) complaints=$(mktemp)
  trap 'tell_end $?' EXIT
}

end_trial() {  # $1: exit code; false where that is a failure
  trap - EXIT
  # runs: bash's own words on its traps.
  eval "$own_trap"
  # runs: bash's own words on its options.
  eval "$shell_options"
  local code=$1 last
  # Modules before version 4 report a failure, but exit with 0.
  if [ "$trying" = modules ] && grep -q 'ERROR' "$complaints"; then code=1; fi
  last=$(last_complaint)
  cat "$complaints" >&2
  rm -f "$complaints"
  [ "$code" != 0 ] || return 0
  fault "$trying" "$name_of_trial failed${last:+: $last}"
  return 1
}

# The output of `module` begins with the fault, and then says whom to ask.
last_complaint() {
  { grep -iw error "$complaints" || tail -n 3 "$complaints"; } | sed -n 's/^[[:space:]]*//; s/^ERROR: //; /./p' |
    if [ "$trying" = modules ]; then head -n 1; else tail -n 1; fi
}

tell_end() {  # $1: exit code
  local code=$1 last
  trap - EXIT
  # runs: bash's own words on its options.
  eval "$shell_options"
  last=$(last_complaint)
  rm -f "$complaints"
  # bash does not run the EXIT trap by itself inside another trap.
  # runs: bash's own words on its traps.
  eval "set -- ${own_trap#trap -- }"
  # runs: bash's own words on its traps.
  (exit 1) || eval "${1-}"
  fault "$trying" "$name_of_trial ended the shell with exit code $code${last:+: $last}"
  exit 1
}

# A shell that is not a login shell has no `module` until the system's files are read as a login shell reads them.
find_module() {
  local file
  for file in '' /etc/profile.d/*.sh "${MODULESHOME:-/usr/share/modules}/init/bash" "${LMOD_PKG:-/usr/share/lmod/lmod}/init/bash"; do
    # Sites add their own paths in files that come after the one that defines it.
    case $file in /etc/profile.d/*) ;; *) ! command -v module > /dev/null || return 0 ;; esac
    # shellcheck source=/dev/null
    # runs: what the system's log-in shells read.
    [ ! -r "$file" ] || . "$file" > /dev/null 2>&1 < /dev/null
  done
  command -v module > /dev/null
}

load_modules() {
  local name
  begin_trial modules 'the set-up of environment modules'
  find_module
  end_trial 0
  command -v module > /dev/null || { fault no_module 'no command module'; return 1; }
  module purge > /dev/null 2>&1 < /dev/null
  for name in "${modules[@]}"; do
    begin_trial modules "module load $name"
    module load "$name" 2> "$complaints" < /dev/null
    end_trial $? || { missing_module=$name; return 1; }
  done
}

# Sets to_source to the file that activates $1: $1 itself, or the file in a virtual environment's folder. conda's folders have
# no such file: the effect of `conda activate` is produced at once.
find_activation() {
  local file
  to_source=$1
  if [ -d "$1/conda-meta" ]; then
    to_source=/dev/null
    export CONDA_PREFIX=$1 CONDA_DEFAULT_ENV=${1##*/} CONDA_SHLVL=1 PATH=$1/bin:$PATH
    for file in "$1"/etc/conda/activate.d/*.sh; do
      # shellcheck source=/dev/null
      # runs: what conda's activate reads.
      [ ! -e "$file" ] || . "$file"
    done
  elif [ -d "$1" ]; then
    to_source=$1/bin/activate
  fi
}

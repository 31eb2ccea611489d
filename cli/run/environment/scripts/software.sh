# shellcheck shell=bash disable=SC2034,SC2154
# Readies a host's software: environment modules, and what --env_activate_path names. environment.sh and ready.sh use it.
# Defined before: modules (array), activate (a path, or empty), and fault, which is told what failed ($1: a word) and why.

# What runs between begin_trial and end_trial is somebody else's: it may end the shell, or leave `set -e` behind.
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
  # Modules before version 4 say that something failed, and exit with 0.
  if [ "$trying" = modules ] && grep -q 'ERROR' "$complaints"; then code=1; fi
  last=$(last_complaint)
  cat "$complaints" >&2
  rm -f "$complaints"
  [ "$code" != 0 ] || return 0
  fault "$trying" "$name_of_trial failed${last:+: $last}"
  return 1
}

# What `module` has to say comes first, and then whom to ask.
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
  # What is to be done at the end is not done by itself within a trap.
  # runs: bash's own words on its traps.
  eval "set -- ${own_trap#trap -- }"
  # runs: bash's own words on its traps.
  (exit 1) || eval "${1-}"
  fault "$trying" "$name_of_trial ended the shell with exit code $code${last:+: $last}"
  exit 1
}

# A shell that is no log-in shell has no `module` unless the system's files are read as that would.
find_module() {
  local file
  for file in '' /etc/profile.d/*.sh "${MODULESHOME:-/usr/share/modules}/init/bash" "${LMOD_PKG:-/usr/share/lmod/lmod}/init/bash"; do
    # Sites add their own paths in files that come after those which define it.
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

# Sets to_source to the file that activates $1: itself, or that of a virtual environment's folder. conda's folders have
# none: what `conda activate` would do is done at once.
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

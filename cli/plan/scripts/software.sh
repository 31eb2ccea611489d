# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# Prepares a host's software: environment modules, and the environment of --env_activate_path. environment.sh and ready.sh use
# it, and container.sh inside a container. Defined before: modules (array), activate (a path, or empty), and the function fault,
# which gets a word for what failed ($1) and the reason.
#
# Foreign code runs in a shell of its own. It may end that shell, or leave it in another folder, with other options, traps,
# descriptors, functions and variables of any name. Only what processes inherit comes back: exported variables, umask and limits.

# The program's variables whose names have no capital letters, as those of dtool's own have none: they are exported last.
declare -A later=()
is_late() { [[ $1 != *[[:upper:]]* && $1 =~ ^[a-z_][a-z_0-9]*$ && $1 != _ ]]; }
remember_late() {
  local each
  while IFS= read -r -d '' each; do
    ! is_late "${each%%=*}" || later[${each%%=*}]=${each#*=}
  done < /proc/self/environ
}
remember_late

# The program's variables, each followed by a zero byte.
print_variables() {
  local name
  # runs: names of this shell's own variables.
  for name in $(compgen -e); do is_late "$name" || printf '%s=%s\0' "$name" "${!name}"; done
  for name in "${!later[@]}"; do printf '%s=%s\0' "$name" "${later[$name]}"; done
}

# Becomes a program, whose variables replace dtool's own. $1: its name, $2...: its words
become() {
  local dtool_name dtool_all=()
  for dtool_name in "${!later[@]}"; do dtool_all+=("$dtool_name=${later[$dtool_name]}"); done
  # runs: names of variables that are exported already, by foreign code or the user.
  for dtool_name in $(compgen -e) "${!later[@]}"; do ! is_late "$dtool_name" || unset "$dtool_name"; done
  # runs: likewise.
  [ ${#dtool_all[@]} = 0 ] || export "${dtool_all[@]?}"
  exec -a "$@"
}

# What a log-in says of Python does not count beside an environment or a container that was named. What the environment's own
# scripts, modules and --export say does.
leave_out_python() {
  local name
  for name in PYTHONPATH PYTHONHOME PYTHONPLATLIBDIR; do
    # runs: names in this file.
    [ -z "${!name-}" ] || left_out+=("$name=${!name}")
    # runs: likewise.
    unset "$name"
  done
}

# A script's bash reads that file first, which may put another Python before the environment's.
leave_out_bash_env() {
  [ -n "$environment" ] && [ -n "${BASH_ENV-}" ] || return 0
  # runs: what each bash below this one would run.
  [ "$("$BASH" -c 'type -P python3' 2> /dev/null < /dev/null)" != "$(type -P python3)" ] || return 0
  left_out+=("BASH_ENV=$BASH_ENV")
  unset BASH_ENV
}

# Sets environment to the folder of the environment that $1 activates (empty: $1 is a script of another kind), and scripts to what
# has to be sourced. conda's folders have no script for that: run_foreign has the effect of `conda activate`.
find_activation() {
  local file
  environment='' scripts=("$1")
  if [ -d "$1" ]; then environment=$1 scripts=("$1/bin/activate"); fi
  file=${1%/bin/activate}
  if [ "$file" != "$1" ] && [ -e "$file/pyvenv.cfg" ]; then environment=$file; fi
  [ -d "$environment/conda-meta" ] || return 0
  scripts=()
  for file in "$1"/etc/conda/activate.d/*.sh; do [ ! -e "$file" ] || scripts+=("$file"); done
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

# Foreign code runs between these two, and begins where the run's processes begin.
begin_foreign() {  # $1: a word for what is tried, $2: its name
  dtool_trying=("$1" "$2")
  printf '%s\0' trying "${dtool_trying[@]}" > "$dtool_file"
  : > "$dtool_complaints"
  builtin cd -- "$dtool_folder" || exit 1
}
end_foreign() {  # $1: exit code
  local code=$1
  builtin trap - EXIT DEBUG ERR RETURN
  # runs: bash's own words on its options.
  eval "$dtool_options"
  # Modules before version 4 report a failure, but exit with 0.
  if [ "${dtool_trying[0]}" = modules ] && grep -q 'ERROR' "$dtool_complaints"; then code=1; fi
  if [ "$code" != 0 ]; then
    printf '%s\0' failed "${dtool_trying[@]}" > "$dtool_file"
    [ "${dtool_trying[0]}" != modules ] || module -t avail 2>&1 < /dev/null | sed -n 's/([^)]*)$//; /^[^ ]*[^ :]$/p' | sort -u | head -n 2000 >> "$dtool_file"
    exit 1
  fi
  cat "$dtool_complaints" >&2
}

# In the shell of its own. What is sourced takes no arguments.
run_foreign() {
  local dtool_trying=() dtool_each dtool_options dtool_out dtool_modules=("${modules[@]}") dtool_scripts=("${scripts[@]}") dtool_activate=$activate dtool_environment=$environment
  exec {dtool_out}>&1
  dtool_options=$(set +o; shopt -p)
  # runs: names of variables that are exported already.
  for dtool_each in "${!later[@]}"; do unset "$dtool_each"; export "$dtool_each=${later[$dtool_each]}"; done
  if [ ${#dtool_modules[@]} != 0 ]; then
    begin_foreign modules 'the set-up of environment modules'
    find_module
    end_foreign 0
    begin_foreign no_module 'no command module'
    command -v module > /dev/null
    end_foreign $?
    module purge > /dev/null 2>&1 < /dev/null
    for dtool_each in "${dtool_modules[@]}"; do
      begin_foreign modules "module load $dtool_each"
      module load "$dtool_each" 1>&"$dtool_out" 2> "$dtool_complaints" < /dev/null
      end_foreign $?
    done
  fi
  [ ! -d "$dtool_environment/conda-meta" ] ||
    export CONDA_PREFIX=$dtool_environment CONDA_DEFAULT_ENV=${dtool_environment##*/} CONDA_SHLVL=1 PATH=$dtool_environment/bin:$PATH
  for dtool_each in "${dtool_scripts[@]}"; do
    begin_foreign activate "$dtool_activate"
    # shellcheck source=/dev/null
    # runs: what the user's --env_activate_path names, and what conda's activate reads.
    . "$dtool_each" 1>&"$dtool_out" 2> "$dtool_complaints" < /dev/null
    end_foreign $?
  done
  # Not in end_foreign, since bash gives a function's caller its traps back.
  builtin trap - EXIT DEBUG ERR RETURN
  builtin export DTOOL_READY=yes
  # Not by words of the shell's alone, which may have functions of any name by now.
  { builtin printf '%s\0' ready "$(umask)" "$(ulimit -Sa)" "$(ulimit -Ha)" && builtin exec "$dtool_cat" /proc/self/environ; } > "$dtool_file"
}

take_limits() {  # $1: soft, $2: hard ones, in the words of ulimit -a
  [ "$1$2" != "$(ulimit -Sa)$(ulimit -Ha)" ] || return 0
  local kind text line
  for kind in S H S; do
    if [ "$kind" = S ]; then text=$1; else text=$2; fi
    while IFS= read -r line; do
      [[ ! $line =~ -([a-zA-Z])\)\ +([a-z0-9]+)$ ]] || ulimit "-$kind${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" 2> /dev/null
    done <<< "$text"
  done
}

take_variables() {  # NAME=VALUE...
  local each name
  local -A found=()
  later=()
  for each; do
    name=${each%%=*}
    case $name in
      # The shell's own, and what says which run this is.
      _ | IFS | PWD | OLDPWD | SHLVL | BASHOPTS | SHELLOPTS | DTOOL_READY | DTOOL_RUN_ID | DTOOL_HOST | DTOOL_LAST_WORDS) found[$name]=yes ;;
      BASH_FUNC_*%%)
        name=${name#BASH_FUNC_}
        # runs: a function that foreign code exports, as each bash below this one would take it.
        declare -F "${name%\%\%}" > /dev/null || { eval "${name%\%\%} ${each#*=}" && export -f "${name%\%\%}"; } 2> /dev/null
        ;;
      *)
        found[$name]=yes
        if is_late "$name"; then
          later[$name]=${each#*=}
        elif [[ $name =~ ^[a-zA-Z_][a-zA-Z_0-9]*$ ]]; then
          # runs: names of variables that foreign code exports.
          export "${each?}"
        fi
        ;;
    esac
  done
  for name in $(compgen -e); do
    # runs: names of this shell's own variables.
    [ -n "${found[$name]-}" ] || is_late "$name" || unset "$name"
  done
}

# The output of `module` begins with the fault, and then says whom to ask. An image may be without grep and the like.
last_complaint() {  # $1: a word for what was tried
  local line errors=() others=()
  while IFS= read -r line || [ -n "$line" ]; do
    line=${line#"${line%%[![:space:]]*}"}
    if [[ ${line,,} =~ (^|[^a-z0-9_])error([^a-z0-9_]|$) ]]; then errors+=("${line#ERROR: }"); elif [ -n "$line" ]; then others+=("$line"); fi
  done < "$dtool_complaints"
  [ ${#errors[@]} != 0 ] || errors=("${others[@]}")
  if [ ${#errors[@]} = 0 ]; then :; elif [ "$1" = modules ]; then printf '%s' "${errors[0]}"; else printf '%s' "${errors[-1]}"; fi
}

# Prints the name of a new file of this user's alone. An image may be without mktemp.
make_file() {
  local file=/tmp/.dtool.$BASHPID.$RANDOM$RANDOM
  if type -P mktemp > /dev/null; then mktemp; else (umask 077; set -C; : > "$file") && echo "$file"; fi
}

# Runs the foreign code. False: it failed, and fault was told.
prepare_software() {  # $1: folder in which each foreign script begins
  local dtool_folder=$1 dtool_file dtool_complaints dtool_cat code last told=()
  [ ${#modules[@]} != 0 ] || [ ${#scripts[@]} != 0 ] || [ -n "$environment" ] || return 0
  [ -d "$dtool_folder" ] || dtool_folder=$PWD
  dtool_cat=$(type -P cat) dtool_file=$(make_file) dtool_complaints=$(make_file)
  if [ -z "$dtool_cat" ]; then fault activate 'there is no program cat'; return 1; fi
  if [ -z "$dtool_complaints" ]; then fault activate 'cannot make a temporary file'; return 1; fi
  # Whatever goes on running there does not hold the answers (5) of ready.sh open.
  (run_foreign) 5>&-
  code=$?
  mapfile -d '' -t told < "$dtool_file"
  last=$(last_complaint "${told[1]-}")
  [ "${told[0]-}" != failed ] || cat "$dtool_complaints" >&2
  # What variables say may be a secret.
  : > "$dtool_file"
  ! type -P rm > /dev/null || rm -f "$dtool_file" "$dtool_complaints"
  if [ "${told[0]-},$code" = ready,0 ] && [[ " ${told[*]} " == *' DTOOL_READY=yes '* ]]; then
    umask "${told[1]}"
    take_limits "${told[@]:2:2}"
    take_variables "${told[@]:4}"
    return
  fi
  failed=("${told[@]:2}")
  case ${told[0]-} in
    failed) [ "${told[1]}" = no_module ] || failed[0]+=" failed${last:+: $last}" ;;
    *) failed[0]="${told[2]-$activate} ended the shell with exit code $code${last:+: $last}" ;;
  esac
  fault "${told[1]-activate}" "${failed[0]}"
  return 1
}

# A virtual environment leads to the folder and the Python with which it was made.
check_python() {  # $1: the environment's folder, as its scripts may name it
  local name file found
  [ -n "$environment" ] || return 0
  for name in python3 python; do
    file=$environment/bin/$name
    if [ -L "$file" ] && [ ! -e "$file" ]; then
      fault environment "$activate is of no use here: its $name leads to $(readlink "$file"), which is not on this host"
      return 1
    fi
    [ -e "$file" ] || continue
    found=$(type -P "$name")
    if ! [ "${found%/*}" -ef "$environment/bin" ] && ! [ "${found%/*}" -ef "$1/bin" ]; then
      fault environment "$activate is of no use here: it was made for ${VIRTUAL_ENV:-another folder}, and $name is ${found:-nowhere}"
      return 1
    fi
  done
}

# Loads the modules and activates the environment, but for one in a container. False: it failed, and fault was told.
ready_software() {  # $1: folder in which the run's processes begin, $2: the code folder
  local named=
  scripts=() environment='' left_out=()
  case $activate in '' | /*) named=$activate ;; *) named=$2/$activate activate=$1/$activate ;; esac
  [ -z "$activate" ] || find_activation "$activate"
  [ -z "$environment$engine" ] || leave_out_python
  if [ -n "$engine" ]; then
    scripts=() environment=''
  elif [ ${#scripts[@]} != 0 ] && [ ! -f "${scripts[0]}" ]; then
    fault no_file "there is no file ${scripts[0]}"
    return 1
  fi
  prepare_software "$1" && check_python "${named%/bin/activate}" || return 1
  leave_out_bash_env
  # What the host's user has installed besides is not among the packages of --environment.
  case $environment in "$HOME"/.dtool/environments/*) export PYTHONNOUSERSITE=1 ;; esac
}

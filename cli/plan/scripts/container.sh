# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The words that start a program in a container. environment.sh and ready.sh use it. Defined before: engine (apptainer, podman
# or charliecloud), image, binds (array: source, target, source, ...), exported (array: names of variables), activate, the
# variables of software.sh, and the function fault, which gets a word for what failed ($1) and the reason.

# Sets engine_program; false if the host has none.
find_engine() {
  local name
  case $engine in
    apptainer) set -- apptainer singularity ;;  # its name before 2021, and that of its fork
    charliecloud) set -- ch-run ;;
    *) set -- "$engine" ;;
  esac
  for name; do
    engine_program=$(command -v "$name") && return
  done
  fault no_engine "$1"
  return 1
}

find_image() {
  if [ "$engine" = podman ]; then
    "$engine_program" image exists "$image" 2> /dev/null < /dev/null && return
  elif [ -e "$image" ]; then
    return
  fi
  fault no_image "$image"
  return 1
}

add_bind() {  # $1: source, $2: target
  local odd
  case $engine in apptainer) odd='*[:,]*' ;; *) odd='*:*' ;; esac
  # shellcheck disable=SC2254
  case $1 in $odd) fault container "$engine cannot bind $1: it splits the name" ;; esac
  # Charliecloud cannot make a mount point in an image that is mounted read-only.
  if [ "$engine" = charliecloud ] && [ -d "$image" ] && [ ! -e "$image$2" ]; then
    if [ -d "$1" ]; then
      mkdir -p "$image$2"
    else
      mkdir -p "$image${2%/*}" && : > "$image$2"
    fi 2> /dev/null || fault container "$image has no $2, where something has to be bound, and it cannot be made there"
  fi
  case $engine in
    apptainer) inside+=(-B "$1:$2") ;;
    podman) inside+=(-v "$1:$2") ;;
    charliecloud) inside+=("--bind=$1:$2") ;;
  esac
  bound+=("$2")
}

# Binds a folder to the same path inside, unless a folder above it or /tmp, which all engines share with the host, contains it.
add_folder() {
  local above
  for above in /tmp "${bound[@]}"; do
    case $1/ in "$above"/*) return ;; esac
  done
  add_bind "$1" "$1"
}

has_gpus() { [ -e "${nvidia_driver:-/proc/driver/nvidia/version}" ]; }

# Sets keep_exported (array: words before a program inside). An image's variables override inherited ones. So exported variables
# are inherited under another name, and renamed back inside. Their values are not given as words, because everybody on the host
# can read those.
keep_exported() {
  local name text=''
  for name in "${exported[@]}"; do
    # runs: names of the user's --export.
    if is_late "$name"; then later[dtool_exported_$name]=${later[$name]}; else export "dtool_exported_$name=${!name}"; fi
    # runs: likewise.
    text+="export $name=\"\$dtool_exported_$name\"; unset dtool_exported_$name; "
  done
  # runs: likewise.
  keep_exported=(/bin/sh -c "$text"'exec "$@"' sh)
}

# Sets inside. The container has only files of its own: it shares the host's network, processes, memory and variables, so that
# ranks meet and kill finds them.
enter_container() {  # $1: folder to work in, $2...: folders that have to be there
  local i name
  bound=() keep_exported=()
  case $engine in
    apptainer)
      # Without this a shell would evaluate values and arguments on their way in.
      export APPTAINER_NO_EVAL=1 SINGULARITY_NO_EVAL=1
      # Otherwise an image's own value of a variable would win.
      # runs: names of the user's --export.
      for name in "${exported[@]}"; do export "APPTAINERENV_$name=${later[$name]-${!name}}" "SINGULARITYENV_$name=${later[$name]-${!name}}"; done
      inside=("$engine_program" exec --pwd "$1")
      ! has_gpus || inside+=(--nv)
      ;;
    podman)
      inside=("$engine_program" run --rm --pull=never --entrypoint= --network=host --pid=host --ipc=host --ulimit=host
        --security-opt=label=disable --env-host "--workdir=$1" -v /tmp:/tmp)
      for name in "${exported[@]}"; do inside+=("--env=$name"); done
      ! has_gpus || inside+=(--device=nvidia.com/gpu=all)
      [ -z "${visit+set}" ] || inside+=(--interactive)
      [ -z "${visit+set}" ] || [ ! -t 0 ] || inside+=(--tty)
      ;;
    charliecloud)
      export USER=${USER:-$(id -un)}
      inside=("$engine_program" "--cd=$1")
      # The image's variables, above all PATH.
      if "$engine_program" "$image" -- /bin/sh -c '[ -e /ch/environment ]' 2> /dev/null < /dev/null; then
        inside+=(--env-no-expand --set-env)
        [ ${#exported[@]} = 0 ] || keep_exported
      fi
      ;;
  esac
  for ((i = 0; i < ${#binds[@]}; i += 2)); do add_bind "${binds[i]}" "${binds[i + 1]}"; done
  for name in "${@:2}"; do add_folder "$name"; done
  # The user's own environment; other environments are the image's.
  name=${activate%/bin/activate}
  case $name/ in "$HOME"/*) [ ! -e "$name" ] || add_folder "$name" ;; esac
  inside+=("$image")
  [ "$engine" != charliecloud ] || inside+=(-- "${keep_exported[@]}")
}

# Activates the environment inside: it was made for the image's system.
activate_inside() {
  # shellcheck disable=SC2016
  inside+=(bash -c "$(declare -f is_late remember_late become find_activation begin_foreign end_foreign run_foreign take_limits take_variables last_complaint make_file prepare_software check_python)"'
declare -A later=()
remember_late
activate=$1 program=("${@:2}") modules=()
fault() { echo "dtool: $2" >&2; exit 1; }
find_activation "$activate"
prepare_software "$PWD" && check_python "$environment" && become "${program[0]}" "${program[@]}"' bash "$activate")
}

# Charliecloud's images contain the driver's libraries, or lack them.
warn_of_missing_driver() {
  [ "$engine" = charliecloud ] && [ -d "$image" ] && has_gpus || return
  compgen -G "$image/usr/lib*/libcuda.so*" > /dev/null || compgen -G "$image/usr/*/*/libcuda.so*" > /dev/null ||
    echo "dtool: $image has no libcuda.so, so no GPU is seen inside: ch-fromhost --nvidia $image puts this host's there" >&2
}

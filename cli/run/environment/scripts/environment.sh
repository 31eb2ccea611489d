# shellcheck shell=bash disable=SC2034,SC2154
# The surroundings of a run's processes on a host: folder, environment, variables. launch.sh comes next. Defined before, by the
# plan: code, output (paths), git_commit (of the code, or empty), listener, listener_and_port, seed, max_restarts,
# export_variables (a function), trainer (empty: a program of the user's), program (array), torchrun (yes or no), and the
# variables of software.sh and container.sh; by the numbers: attempt, machines, machine_id, processes, state. Sets inside
# (array: words before a program).
# Numbers by the numbers: machine_id.

# dtool-host waits for `begun`, or for `fault` with the reason why nothing begins.
give_up() {  # $1: exit code, $2: why
  echo "dtool: $2" >&2
  echo "$2" > "$state/fault"
  exit "$1"
}
fault() { give_up 1 "$2"; }  # $1: a word for what failed
[ -d "$code" ] || mkdir -p "$code"
cd "$code" || give_up 1 "cannot enter $code"
[ -d "$output" ] || mkdir -p "$output" || give_up 1 "cannot make $output"
set --  # the sourced files below take no arguments
[ ${#modules[@]} = 0 ] || load_modules
case $activate in '' | /*) ;; *) activate=$code/$activate ;; esac
if [ -n "$activate" ] && [ -z "$engine" ]; then
  begin_trial activate "$activate"
  find_activation "$activate"
  # Not in a function: declarations of the sourced file would end with it.
  # shellcheck source=/dev/null
  # runs: what the user's --env_activate_path names.
  . "$to_source" 2> "$complaints" < /dev/null
  end_trial $?
fi
export DTOOL_MACHINE_ID=$machine_id DTOOL_SEED=$seed DTOOL_OUTPUT_DIR=$output DTOOL_ATTEMPT=$attempt
export TORCHELASTIC_RESTART_COUNT=$attempt TORCHELASTIC_MAX_RESTARTS=$max_restarts
[ -z "$git_commit" ] || export DTOOL_GIT_COMMIT=$git_commit  # .git itself is not sent
[ ! -e "$state/experiment.toml" ] || export DTOOL_EXPERIMENT=$state/experiment.toml
# A secret of this run's processes. Given as a path, since others can read arguments and environments.
[ ! -e "$state/token" ] || export DTOOL_TOKEN_FILE=$state/token
export PYTHONUNBUFFERED=1  # otherwise the log lags behind

# The interface by which this machine reaches the listener. On the listener's own machine it is the interface that has its
# address: the route to oneself is lo, and peers that got lo's address would reach themselves.
interface() {
  local address=$listener words i
  case $listener in
    *:* | *[!0-9.]*) address=$(getent ahosts "$listener" 2> /dev/null | awk 'NR == 1 { print $1 }') ;;
  esac
  if ((machine_id == 0)); then
    ip -o addr show 2> /dev/null | awk -v prefix="${address:-$listener}/" 'index($4, prefix) == 1 { print $2; exit }'
  else
    read -ra words < <(ip -o route get "${address:-$listener}" 2> /dev/null)
    for ((i = 1; i < ${#words[@]}; i++)); do
      if [ "${words[i - 1]}" = dev ]; then echo "${words[i]}"; return; fi
    done
  fi
}
if [ "$machines" -gt 1 ]; then
  found=$(interface)
  if [ -n "$found" ] && [ "$found" != lo ]; then export NCCL_SOCKET_IFNAME=$found GLOO_SOCKET_IFNAME=$found; fi
fi
export_variables  # the user's variables win
inside=()
if [ -n "$engine" ]; then
  if [ "$engine" != podman ] && [ "${image:0:1}" != / ]; then image=$code/$image; fi
  find_engine && find_image
  enter_container "$code" "$code" "$output" "$state" ${trainer:+"${trainer%/*}"}
  warn_of_missing_driver
  [ -z "$activate" ] || activate_inside
fi
[ "$torchrun" = no ] || wrap_in_torchrun
if [ -z "$trainer$engine" ] && ! type -P -- "${program[0]}" > /dev/null; then
  [ ! -f "${program[0]}" ] || give_up 126 "${program[0]} may not be executed: chmod +x, or name the program that reads it first"
  give_up 127 "${program[0]}: no such program on this host"
fi

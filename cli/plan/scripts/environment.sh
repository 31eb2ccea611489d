# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# Where a run's processes run on a host: folder, environment, variables. launch.sh comes next. Defined before, by the plan:
# code, output (paths), tree (the run's own copy of the code; empty: there is none), is_resumed (yes: the folder has the outputs of an earlier run), git_commit (of the code, or empty), listener, listener_and_port, seed, max_restarts, lost_after, export_variables (a function), trainer (empty: a
# program of the user's), visit (array, or not set: as in numbers_ssh.sh), pytorch (the folder of the one that the trainer uses, or empty), program (array), torchrun (yes or no), and what software.sh and container.sh want; by the
# numbers: attempt, machines, machine_id, processes, state; by dtool-host DTOOL_HOST (itself). Sets inside (array: words that come before a program).

# dtool-host (ssh/host/start_job.cpp) waits for `begun`, or for `fault` and why nothing begins.
give_up() {  # $1: exit code, $2: why
  echo "dtool: $2" >&2
  [ -n "${visit+set}" ] || echo "$2" > "$state/fault"
  exit "$1"
}
fault() { give_up 1 "$2"; }  # $1: a word for what failed
folder=${tree:-$code}
if [ -n "${visit+set}" ]; then
  program=("${visit[@]}") trainer='' torchrun=no fill=no
  [ -d "$folder" ] || give_up 1 "the run's folder $folder is not there any more"
fi
[ -n "$tree" ] || [ -d "$code" ] || mkdir -p "$code"
cd "$folder" || give_up 1 "cannot enter $folder"
[ -d "$output" ] || [ -n "${visit+set}" ] || mkdir -p "$output" || give_up 1 "cannot make $output"
ready_software "$folder" "$code"
export DTOOL_MACHINE_ID=$machine_id DTOOL_SEED=$seed DTOOL_OUTPUT_DIR=$output DTOOL_CODE_DIR=$code DTOOL_ATTEMPT=$attempt DTOOL_LOST_AFTER=$lost_after
export TORCHELASTIC_RESTART_COUNT=$attempt TORCHELASTIC_MAX_RESTARTS=$max_restarts
[ "$is_resumed" = no ] || export DTOOL_RESUME_FROM=$output  # outputs go on in the folder of the earlier run
[ -z "$git_commit" ] || export DTOOL_GIT_COMMIT=$git_commit  # .git itself is not sent
[ ! -e "$state/experiment.toml" ] || export DTOOL_EXPERIMENT=$state/experiment.toml
# What this run's processes alone know: a path, since arguments and environments can be read by others.
[ ! -e "$state/token" ] || export DTOOL_TOKEN_FILE=$state/token
[ -z "$pytorch" ] || export DTOOL_PYTORCH=$pytorch
export PYTHONUNBUFFERED=1  # a log that lags behind is no log

# The interface by which this machine reaches rank 0.
if [ "$machines" -gt 1 ]; then
  found=$("$DTOOL_HOST" interface "$machine_id" "$listener")
  if [ -n "$found" ]; then export NCCL_SOCKET_IFNAME="=$found" GLOO_SOCKET_IFNAME=$found; fi  # without the =, NCCL takes eth10 for eth1
fi
export_variables  # what the user gave wins
inside=()
if [ -n "$engine" ]; then
  if [ "$engine" != podman ] && [ "${image:0:1}" != / ]; then image=$folder/$image; fi
  find_engine && find_image
  [ -d "$code" ] || code=$folder
  # The run's folder: with a scheduler, what machines share are links into the first one's.
  enter_container "$folder" "$folder" "$code" "$output" "${state%/*}" ${trainer:+"${trainer%/*}"}
  warn_of_missing_driver
  [ -z "$activate" ] || activate_inside
fi
[ "$torchrun" = no ] || wrap_in_torchrun
if [ -z "$trainer$engine" ] && found=$(type -P -- "${program[0]}"); then
  line=  # the kernel's own word would be that the program is not there
  { read -r -n 256 line < "$found" || :; } 2> /dev/null
  read -r interpreter _ <<< "${line#??}"
  [ "${line:0:2}" != '#!' ] || [ -e "$interpreter" ] || give_up 127 "${program[0]}: its interpreter $interpreter is not there"
fi
if [ -z "$trainer$engine" ] && ! type -P -- "${program[0]}" > /dev/null; then
  [ ! -L "${program[0]}" ] || [ -e "${program[0]}" ] || give_up 127 "${program[0]} leads to $(readlink -- "${program[0]}"), which is not on this host"
  [[ ${program[0]} == */* ]] || [ ! -f "${program[0]}" ] || give_up 127 "${program[0]} is in the code folder: write ./${program[0]}"
  [ ! -f "${program[0]}" ] || [[ $(stat -Lc %A "${program[0]}") != *x* ]] || give_up 126 "${program[0]} may not be executed: is its file system mounted noexec? Name the program that reads it first"
  [ ! -f "${program[0]}" ] || give_up 126 "${program[0]} may not be executed: chmod +x, or name the program that reads it first"
  other=
  [ "${program[0]}" != python ] || ! type -P python3 > /dev/null || other="; python3 is there"
  give_up 127 "${program[0]}: no such program on this host$other"
fi

# shellcheck shell=bash disable=SC2154
# Looks whether a host can run a machine's part of a run. Defined before: answer, folder (the run's, or empty: none is made), code (if it
# must be there, or empty), code_place (where it will be), what software.sh and container.sh want, torchrun and runs_here (yes or no: nodes
# behind the host run the processes), trainer_beside (the launcher's trainer, or empty: none wanted), experiment (for the trainer to check,
# or empty), machines (their number), what programs.sh wants, check_launcher (a function, the launcher's own), port (to look
# at, `auto`, or empty on machines that do not listen), peer (an address of another machine, or empty), identify.
# What the launcher lacks, and how to mend it.
lack_of() { answer launcher_lack "$1"; answer launcher_hint "${2-}"; }
answer home "$HOME"
identify
answer host "$identity"
find_lacks

# What keeps the environment from being made ready. It may be the last that is heard: somebody else's script ended this shell.
fault() {
  answer "bad_$1" "$2"
  answer checked yes
}
if [ ${#modules[@]} != 0 ] && ! load_modules && [ -n "${missing_module-}" ]; then
  answer missing_module "$missing_module"
  answer known_modules "$(module -t avail 2>&1 < /dev/null | sed -n 's/([^)]*)$//; /^[^ ]*[^ :]$/p' | sort -u | head -n 2000)"
fi
case $activate in '' | /*) ;; *) activate=$code_place/$activate ;; esac
if [ -n "$activate" ] && [ -z "$engine" ]; then
  begin_trial activate "$activate"
  find_activation "$activate"
  if [ -f "$to_source" ] || [ "$to_source" = /dev/null ]; then
    # shellcheck source=/dev/null
    # runs: what the user's --env_activate_path names.
    . "$to_source" > /dev/null 2> "$complaints" < /dev/null
    end_trial $?
  else
    end_trial 0
    answer no_activate "$to_source"
  fi
fi
inside=()
if [ -n "$engine" ]; then
  if [ "$engine" != podman ] && [ "${image:0:1}" != / ]; then image=$code_place/$image; fi
  for ((i = 0; i < ${#binds[@]}; i += 2)); do
    [ -e "${binds[i]}" ] || answer no_bind "${binds[i]}"
  done
  if [ "$runs_here" = no ]; then
    [ "$engine" = podman ] || find_image
  elif find_engine && find_image; then
    trainer_folders=()
    for folder_of in "${trainer_beside%/*}" "$HOME/.dtool/bin"; do
      [ -z "$trainer_beside" ] || [ ! -x "$folder_of/dtool-trainer" ] || trainer_folders+=("$folder_of")
    done
    enter_container / "${trainer_folders[@]}"
    # What differs from host to host for nothing would be told host by host.
    try_container() { timeout 40 "${inside[@]}" true 2>&1 < /dev/null | sed 's/^ch-run\[[0-9]*\]: //'; return "${PIPESTATUS[0]}"; }
    said=$(try_container)
    code_of=$?
    case $code_of in 0 | 124) ;; *) answer bad_container "$engine cannot run $image: ${said##*$'\n'}" ;; esac
    if [ "$code_of" = 0 ] && [ -n "$activate" ]; then
      activate_inside
      said=$(try_container)
      case $? in 0 | 124) ;; *) answer bad_activate "in the container: ${said//$'\n'/; }" ;; esac
    fi
  fi
fi
if [ "$torchrun" = yes ] && [ -z "$engine" ] && ! command -v torchrun > /dev/null; then
  python=$(command -v python3 || command -v python)
  "${python:-false}" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)' 2> /dev/null || answer no_torchrun yes
fi
[ -z "$code" ] || [ -d "$code" ] || answer no_code "$code"
if [ -n "$trainer_beside" ]; then
  for trainer in "$trainer_beside" "$HOME/.dtool/bin/dtool-trainer" "$(command -v dtool-trainer)"; do
    [ -x "$trainer" ] || continue
    answer trainer "$trainer"
    answer trainer_version "$("${inside[@]}" "$trainer" --version 2>&1 < /dev/null | head -n 1)"
    if [ -n "$experiment" ]; then
      file=$(mktemp -p /tmp) && printf '%s\n' "$experiment" > "$file"
      said=$("${inside[@]}" "$trainer" --check "$file" --distributed_nodes "$machines" --distributed_ip_and_port 127.0.0.1:1 2>&1) ||
        answer bad_experiment "${said//"$file"/experiment}"
      rm -f "$file"
    fi
    break
  done
fi
gpus=0
! command -v nvidia-smi > /dev/null || gpus=$(nvidia-smi -L 2> /dev/null | grep -c '^GPU ')
answer gpus "$gpus"

if [ -n "$port" ]; then
  taken=$(listening_ports)
  if [ "$port" = auto ]; then
    find_free_port
    port=$free
    answer port "$port"
  elif [[ $taken == *" $port "* ]]; then
    answer port_taken "$port"
  fi
  taken+=" $port "
  find_free_port
  answer coordinator_port "$free"
  read -r _ _ address _ <<< "${SSH_CONNECTION-}"
  if [ -z "$address" ] && [ -n "$peer" ]; then
    peer=$(getent ahosts "$peer" 2> /dev/null | awk 'NR == 1 { print $1 }')
    address=$(ip -o route get "$peer" 2> /dev/null | sed -n 's/.* src \([^ ]*\).*/\1/p')
  fi
  answer address "${address:-127.0.0.1}"
fi

check_launcher

# Whether any folder in $1 but $2 is empty: told without a process, as a rule none is.
is_any_empty() {
  local each
  for each in "$1"*/; do
    [ "$each" = "$2" ] || compgen -G "$each*" > /dev/null || return 0
  done
  return 1
}

# systemd may end what a user leaves running at logout
if grep -qsE '^ *KillUserProcesses *= *(yes|true|1|on)' /etc/systemd/logind.conf /etc/systemd/logind.conf.d/*.conf &&
  [ ! -e "/var/lib/systemd/linger/$(id -un)" ]; then
  answer logout_kills yes
fi
if [ -n "$folder" ]; then
  (umask 077; mkdir -p "$folder") || answer home_read_only yes
  # A launcher that was killed between here and its start left its run's folder empty. A day by the file system's clock, which
  # may be another machine's.
  is_any_empty "${folder%/*}/" "$folder/" &&
    find "${folder%/*}" -mindepth 1 -maxdepth 1 -type d -empty ! -newermt "@$(($(stat -c %Y "$folder") - 86400))" -exec rmdir {} + 2> /dev/null
else
  # What of the way to the runs' folders is there already.
  for place in "$HOME/.dtool/runs" "$HOME/.dtool" "$HOME"; do
    [ ! -e "$place" ] || break
  done
  { [ -d "$place" ] && [ -w "$place" ]; } || answer home_read_only yes
fi
answer checked yes

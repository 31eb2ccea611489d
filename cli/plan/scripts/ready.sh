# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Prepares a run's environment on a host, reports what prevents it, and hands it over to dtool-host (ssh/host/answers/check_host.cpp).
# Defined before: answer, code_place (the future folder of the code), the variables of software.sh and container.sh, runs_here
# (yes or no: nodes behind the host run the processes), trainer_beside (the launcher's trainer, or empty: none wanted),
# trainer_bundle (the hash of one that dtool sends, or empty),
# check_launcher (a function of the launcher, which reports lacks with lack_of).
lack_of() { answer launcher_lack "$1"; answer launcher_hint "${2-}"; }  # $1: what, $2: how to mend it
fault() { answer "bad_$1" "$2"; }

if ! ready_software "$code_place" "$code_place" && [[ ${failed[0]-} == 'module load '* ]]; then
  read -r _ _ missing _ <<< "${failed[0]}"
  answer missing_module "$missing"
  answer known_modules "${failed[1]-}"
fi
for each in "${left_out[@]}"; do answer left_out "$each"; done

inside=()
# Text that differs between hosts for no reason would keep equal failures from being folded.
try_container() { timeout 40 "${inside[@]}" true 2>&1 < /dev/null | sed 's/^ch-run\[[0-9]*\]: //'; return "${PIPESTATUS[0]}"; }
enter_with_trainers() {
  local folder folders=()
  for folder in "${trainer_beside%/*}" "$HOME/.dtool/bin" ${trainer_bundle:+"$HOME/.dtool/trainers/$trainer_bundle"}; do
    [ -z "$trainer_beside" ] || [ ! -x "$folder/dtool-trainer" ] || folders+=("$folder")
  done
  enter_container / "${folders[@]}"
}
# The nodes run the processes, and often they alone have the engine. A trainer is asked in the container if this host can enter it.
look_into_container() {
  local unseen='' said
  fault() { unseen="$1 $2"; }
  if find_engine && find_image; then
    enter_with_trainers
    [ -z "$activate" ] || activate_inside
    said=$(try_container)
    case $? in 0 | 124) ;; *) unseen="container $engine cannot run $image: ${said##*$'\n'}" ;; esac
  fi
  [ -n "$unseen" ] || return
  inside=()
  answer "unseen_${unseen%% *}" "${unseen#* }"
}
if [ -n "$engine" ]; then
  if [ "$engine" != podman ] && [ "${image:0:1}" != / ]; then image=$code_place/$image; fi
  for ((i = 0; i < ${#binds[@]}; i += 2)); do
    [ -e "${binds[i]}" ] || answer no_bind "${binds[i]}"
  done
  if [ "$runs_here" = no ]; then
    { [ "$engine" = podman ] || find_image; } && [ -n "$trainer_beside" ] && look_into_container
  elif find_engine && find_image; then
    enter_with_trainers
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
check_launcher

# The words before a program, and all variables.
{
  echo ready
  printf '%s\0' "${#inside[@]}" "${inside[@]}"
  print_variables
} >&5

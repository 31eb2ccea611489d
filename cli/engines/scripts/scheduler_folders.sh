# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2015,SC2154
# Makes the state folders of a run's other machines beside the first one's. Defined before: states, logs (arrays of paths, by
# machine).
make_folders() {  # $1: a file of the first machine's that tells how the job is doing
  local i program
  # The nodes run this version, which its own folder may not keep so long.
  program=$(readlink "/proc/$PPID/exe")
  ln -f "$program" ../dtool-host 2> /dev/null || cp "$program" ../dtool-host || fail "cannot write into ${state%/*}"
  for ((i = 1; i < ${#states[@]}; i++)); do
    mkdir -p "${states[i]}" "$(dirname "${logs[i]}")" || fail "cannot make the folder ${states[i]}"
    ln -sfn "${logs[i]}" "${states[i]}/log" && ln -sfn "$state/$1" "${states[i]}/$1" || fail "cannot write into ${states[i]}"
    [ ! -e experiment.toml ] || ln -sfn "$state/experiment.toml" "${states[i]}/experiment.toml"
    [ ! -e token ] || ln -sfn "$state/token" "${states[i]}/token"
    : >> "${logs[i]}" || fail "cannot write ${logs[i]}"
    : >> "${states[i]}/log_times" || fail "cannot write into ${states[i]}"
  done
}

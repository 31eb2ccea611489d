#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What can go wrong between dtool and Grid Engine has a message that names it; what Grid Engine does to a job by itself is in status.
source "$(dirname "$0")/harness.sh"
gridengine_lab 3
mkdir code
cd code
echo word >file
grid() {
  local where=(--runs_on "$login") environment=(--parallel_environment one)
  [[ $* != *--runs_on* ]] || where=()
  [[ $* != *--parallel_environment* ]] || environment=()
  dtool run --launcher gridengine "${where[@]}" "${environment[@]}" "$@" -- sleep 1000
}
grid_program() { dtool run --launcher gridengine --runs_on "$login" --parallel_environment one --nodes 2 "$@"; }
queue_is_empty() { [[ -z $(on h1 qstat) ]]; }

# Refused before anything is sent or started.
refused() {  # pattern, flags...
  expect_exit 2 grid "${@:2}"
  expect_error "$1"
  expect_equal '' "$(on h1 qstat)"
  expect_exit 0 dtool list
  expect_no_output .
}
refused 'Grid Engine does not take the job: .*parallel environment "nosuch" does not exist' --nodes 2 --parallel_environment nosuch
refused 'Grid Engine does not take the job: .*unknown queue "nosuch"' --partition nosuch
refused 'Grid Engine does not take the job: .*only offers [0-9]+ slots' --nodes 50
refused "'soon' is no time" --time soon
refused 'one login host, and --runs_on names 2' --runs_on "$login,local"
refused "-pe is dtool's own" --qsub_arg='-pe lab 7'
refused "is not -NAME or '-NAME VALUE'" --qsub_arg='-l "x'
refused "'a b' is more than a plain word" --partition 'a b'
refused '--gres goes with --launcher slurm, and this run uses gridengine' --gres gpu:1
expect_exit 2 dtool run --launcher gridengine --runs_on "$login" --nodes 2 -- true
expect_error 'a job of several processes needs --parallel_environment'
expect_exit 2 dtool run --parallel_environment one -- true
expect_error '--parallel_environment goes with --launcher gridengine, and this run uses ssh'
on h1 bash -c 'qconf -sp one | sed "s/^control_slaves .*/control_slaves FALSE/; s/^pe_name .*/pe_name closed/" >/tmp/pe.$$ && qconf -Ap /tmp/pe.$$; rm /tmp/pe.$$' >/dev/null
refused 'lets jobs start nothing on other hosts' --nodes 2 --parallel_environment closed
fault hide h1 qsub
refused 'qsub is not there'
fault unhide h1 qsub

# Slots that are not where they were wanted.
on h1 bash -c 'qconf -sp one | sed "s/^allocation_rule .*/allocation_rule \$pe_slots/; s/^pe_name .*/pe_name together/" >/tmp/pe.$$ && qconf -Ap /tmp/pe.$$ &&
  qconf -aattr queue pe_list together lab; rm /tmp/pe.$$' >/dev/null
expect_exit 1 grid --nodes 2 --parallel_environment together --follow
expect_output 'gave other slots than 1 on each of 2: h[23]: 2$'
expect_exit 0 dtool kill --all --yes --delete

# A folder that the submit host has alone.
on h1 mount -t tmpfs none /srv
expect_exit 1 grid --in_place --code_path /srv/code --output_dir /root/outputs --follow
expect_output 'h[23].* does not see the code folder /srv/code: --code_path names one that all nodes see'
expect_exit 0 dtool kill --all --yes --delete

# A process on another node that ends by a signal, or in a way that Grid Engine has a meaning for: the cause is the process, and the job is over.
ends() {  # exit code, program, cause
  expect_exit 1 grid_program --follow -- bash -c '[ "$RANK" = 0 ] && exec sleep 1000; '"$2"
  expect_exit 1 dtool status
  expect_output "cause: rank 1 on machine 1 \\(h[23]\\) $3"
  expect_exit 1 dtool logs -f
  expect_error "machine1 ended with exit code $1"
  expect_exit 0 dtool kill --all --yes --delete
}
ends 137 'kill -KILL $$' 'was killed by signal 9 \(KILL\)'
ends 139 'exit 139' 'was killed by signal 11 \(SEGV\)'
ends 99 'exit 99' 'ended with exit code 99'
expect_exit 1 grid_program --follow -- bash -c 'exit 99'
eventually 10 queue_is_empty
expect_exit 1 dtool status
expect_output 'ended with exit code 99'
expect_exit 0 dtool kill --all --yes --delete

# An environment that fails in the job alone.
# shellcheck disable=SC2016
echo '[ -z "${JOB_ID-}" ] || { echo "no licence" >&2; false; }' >"$DTOOL_LAB_FOLDER/host1/root/activate"
# shellcheck disable=SC2088
expect_exit 1 grid_program --env_activate_path '~/activate' --follow -- true
expect_output 'dtool: /root/activate failed: no licence'
expect_exit 1 dtool status
expect_output 'cause: rank [01] on machine [01] .* exit code 1: dtool: /root/activate failed: no licence'
expect_exit 1 dtool logs -f
expect_error 'machine[01] ended with exit code 1'
expect_exit 0 dtool kill --all --yes --delete

# Deleted behind dtool's back.
state() { on h1 qstat | awk 'NR > 2 { print $5 }'; }
running() { [[ $(state) == r ]]; }
expect_exit 0 grid --nodes 2
eventually 30 running
on h1 qdel "$(on h1 qstat | awk 'NR > 2 { print $1 }')" >/dev/null
cancelled() { expect_exit 1 dtool status && expect_output 'cause: job [0-9]+ was cancelled'; }
eventually 30 cancelled
expect_exit 1 dtool logs -f
expect_error 'the scheduler ended it: cancelled'
expect_exit 0 dtool kill --all --yes --delete

# The time limit of a program that nobody asked to go on.
expect_exit 0 grid --nodes 2 --time 0:12
timed_out() { expect_exit 1 dtool status && expect_output 'cause: job [0-9]+ reached its time limit' && expect_output 'timed out'; }
eventually 60 timed_out
expect_exit 0 dtool kill --all --yes --delete

# Grid Engine cannot begin the job: its folder is not there.
expect_exit 0 grid --qsub_arg=-h
folder=$(echo "$DTOOL_LAB_FOLDER"/host1/root/.dtool/runs/*)
mv "$folder" "$folder.away"
on h1 qrls "$(on h1 qstat | awk 'NR > 2 { print $1 }')" >/dev/null
has_error() { [[ $(state) == Eqw ]]; }
eventually 30 has_error
mv "$folder.away" "$folder"
cannot_begin() { expect_exit 1 dtool status && expect_output 'cause: Grid Engine could not begin job [0-9]+ \(JobLaunchFailure: .*\): do its nodes see'; }
eventually 20 cannot_begin
expect_exit 1 dtool logs -f
expect_error 'Grid Engine could not begin it: do its nodes see'
expect_exit 0 dtool kill --all --yes --delete
expect_equal '' "$(on h1 qstat)"

# Its master is away: the run goes on, and nobody claims to know how it is, or to have ended it.
expect_exit 0 grid --nodes 2
eventually 30 running
fault stop-qmaster
unknown() { expect_exit 1 dtool status && expect_output 'its scheduler does not answer'; }
eventually 30 unknown
expect_exit 1 dtool kill --all --yes --delete
expect_error 'the scheduler may still have it'
expect_exit 2 grid
expect_error 'Grid Engine does not take the job'
fault restart-qmaster
expect_exit 0 dtool kill --all --yes --delete
expect_equal '' "$(on h1 qstat)"

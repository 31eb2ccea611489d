# SPDX-License-Identifier: MIT
# A real Grid Engine on a lab's hosts (`tests/lab up 3 --gridengine`): its master runs in host 1, its execution daemon in each
# host. Sourced by tests/lab. All of its daemons are processes of the hosts, so they end with them. Each lab has its own network
# for their ports.
# shellcheck shell=bash disable=SC2154

# Called before anything is started.
need_gridengine() {
  local program
  [[ $mode == isolated ]] || fail '--gridengine needs a lab of namespaces, and this one would be without'
  [[ $login == no || $count -gt 1 ]] || fail '--login needs a second host, which runs the jobs'
  [[ $behind == no ]] || fail '--gridengine and --behind do not go together: every host must reach host 1'
  for program in sge_qmaster sge_execd qsub; do
    command -v "$program" >/dev/null || fail "--gridengine needs $program: tests/dependencies launchers"
  done
}

# Made before the hosts exist, since Debian's commands look for the settings by themselves: in the cell named `default` of each
# host.
make_gridengine_folders() { mkdir -p "$folder/gridengine/default/common" "$folder/gridengine/spool/execd" "$folder/gridengine/spool/qmaster/job_scripts"; }

start_gridengine() {
  local i daemons=()
  write_gridengine_settings
  start_qmaster
  # shellcheck disable=SC2016
  in_host 1 sh -c 'cd "$1" && qconf -as "$2" && qconf -ah "$2" && qconf -Ahgrp hosts && qconf -Ap one && qconf -Ap two && qconf -Msconf scheduling &&
    qconf -sq >queue && cat queue_settings | while read -r key value; do sed -i "s|^$key .*|$key $value|" queue || exit; done && qconf -Aq queue' \
    sh "$folder/gridengine" "$(seq -s, -f 'h%g' "$count")" </dev/null >>"$folder/gridengine/daemons.log" 2>&1 ||
    gridengine_failed 'its queue cannot be made'
  for ((i = 1; i <= count; i++)); do
    is_node "$i" || continue
    start_execd "$i" &
    daemons+=("$!")
  done
  wait "${daemons[@]}"
  await_gridengine 'all hosts report' all_hosts_report
}

# Spooling to files needs no database. Root may run jobs, since the whole lab runs as root. Tests should be quick: jobs begin
# within a second, and a kill is short. A job's TMPDIR is on each host's own /dev/shm, since the hosts share /tmp.
write_gridengine_settings() {
  local here=$folder/gridengine i
  printf '%s\n' 'admin_user none' 'default_domain none' 'ignore_fqdn true' 'spooling_method classic' 'spooling_lib libspoolc' \
    "spooling_params $here/default/common;$here/spool/qmaster" 'binary_path /usr/sbin' "qmaster_spool_dir $here/spool/qmaster" \
    'security_mode none' 'listener_threads 2' 'worker_threads 2' 'scheduler_threads 1' >"$here/default/common/bootstrap"
  echo h1 >"$here/default/common/act_qmaster"
  sed -e "s|^execd_spool_dir .*|execd_spool_dir $here/spool/execd|" -e 's|^min_\([ug]id\) .*|min_\1 0|' \
    -e 's|^load_report_time .*|load_report_time 00:00:01|' -e 's|flush_time=[0-9:]*|flush_time=00:00:01|' \
    /usr/share/gridengine/default-configuration >"$here/configuration"
  printf '%s\n' 'group_name @allhosts' "hostlist $(for ((i = 1; i <= count; i++)); do ! is_node "$i" || printf 'h%d ' "$i"; done)" >"$here/hosts"
  for i in one two; do
    printf '%s\n' "pe_name $i" 'slots 9999' 'user_lists NONE' 'xuser_lists NONE' 'start_proc_args NONE' 'stop_proc_args NONE' \
      "allocation_rule $([[ $i == one ]] && echo 1 || echo 2)" 'control_slaves TRUE' 'job_is_first_task FALSE' 'urgency_slots min' \
      'accounting_summary FALSE' 'qsort_args NONE' >"$here/$i"
  done
  printf '%s\n' 'qname lab' 'hostlist @allhosts' 'load_thresholds NONE' 'pe_list one two' 'slots 16' 'tmpdir /dev/shm' 'notify 00:00:05' >"$here/queue_settings"
  printf '%s\n' 'algorithm default' 'schedule_interval 0:0:1' 'maxujobs 0' 'queue_sort_method load' 'job_load_adjustments NONE' \
    'load_adjustment_decay_time 0:0:0' 'load_formula slots' 'schedd_job_info true' 'flush_submit_sec 1' 'flush_finish_sec 1' 'params none' \
    'reprioritize_interval 0:0:0' 'halftime 168' 'usage_weight_list cpu=1,mem=0,io=0' 'compensation_factor 5' 'weight_user 0.25' \
    'weight_project 0.25' 'weight_department 0.25' 'weight_job 0.25' 'weight_tickets_functional 0' 'weight_tickets_share 0' \
    'share_override_tickets TRUE' 'share_functional_shares TRUE' 'max_functional_jobs_to_schedule 200' 'report_pjob_tickets TRUE' \
    'max_pending_tasks_per_job 50' 'halflife_decay_list none' 'policy_hierarchy OFS' 'weight_ticket 0.5' 'weight_waiting_time 0.278' \
    'weight_deadline 3600000' 'weight_urgency 0.5' 'weight_priority 0' 'max_reservation 0' 'default_duration INFINITY' >"$here/scheduling"
  # shellcheck disable=SC2016
  in_host 1 sh -c 'cd "$1" && export SGE_ROOT=/var/lib/gridengine && tools=/usr/lib/gridengine templates=/usr/share/gridengine/util/resources &&
    $tools/spoolinit classic libspoolc "$1/default/common;$1/spool/qmaster" init && $tools/spooldefaults configuration "$1/configuration" &&
    $tools/spooldefaults complexes $templates/centry && $tools/spooldefaults usersets $templates/usersets && $tools/spooldefaults managers root' \
    sh "$here" </dev/null >>"$here/daemons.log" 2>&1 || gridengine_failed 'its folders cannot be made'
}

start_qmaster() {
  in_host 1 sge_qmaster </dev/null >>"$folder/gridengine/daemons.log" 2>&1 || gridengine_failed 'sge_qmaster does not start'
  await_gridengine 'sge_qmaster answers' ask_gridengine qconf -sh
}

start_execd() { in_host "$1" sge_execd </dev/null >>"$folder/gridengine/daemons.log" 2>&1 || gridengine_failed "sge_execd does not start on host $1"; }

ask_gridengine() { in_host 1 timeout 10 "$@" >"$folder/gridengine/answer" 2>&1; }

# A host that has not reported to this master has no load.
all_hosts_report() {
  local hosts=$count
  [[ $login == no ]] || hosts=$((count - 1))
  ask_gridengine qhost && [[ $(awk '/^h[0-9]+ / && $7 != "-"' "$folder/gridengine/answer" | wc -l) == "$hosts" ]]
}

lab_stop_qmaster() {
  local tries
  in_host 1 pkill -x sge_qmaster || fail "lab '$name' has no sge_qmaster that runs"
  for ((tries = 0; tries < 500; tries++)); do
    in_host 1 pgrep -x sge_qmaster >/dev/null || return 0
    sleep 0.05
  done
  fail 'sge_qmaster did not end'
}
# An execution daemon registers with a new master at most every 30 s; until then the master does not learn of a job's end.
lab_restart_qmaster() {
  start_qmaster
  await_gridengine 'all hosts report again' all_hosts_report
}

await_gridengine() {
  local what=$1 tries
  shift
  for ((tries = 0; tries < 300; tries++)); do
    ! "$@" || return 0
    sleep 0.2
  done
  gridengine_failed "not within a minute: $what"
}

gridengine_failed() {
  tail -n 20 "$folder"/gridengine/daemons.log "$folder"/gridengine/answer "$folder"/gridengine/spool/*/messages "$folder"/gridengine/spool/execd/*/messages >&2 || true
  fail "$1"
}

# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# What a run's scripts ask of Grid Engine, as cli/engines/scheduler.h lists it. Follows words.sh. Defined before:
# limit (seconds; 0: the job has none), tasks (to be started on each host), all_tasks (on all) and processes_of_node (its slots).
# Numbers by the plan and the job: nodes tasks limit notice processes_of_node members first.
scheduler='Grid Engine' package=gridengine-client programs='qsub qstat qdel qrsh qacct' how_to_cancel='qdel dtool_'
noise='User defined signal|[Tt]erminated|^$'

# ---- in the job
job_task() { refuse_unless_numbers "$SGE_TASK_ID" && task=$((SGE_TASK_ID - 1)); }
job_hosts() { if [ -e "${PE_HOSTFILE-}" ]; then cat "$PE_HOSTFILE"; else echo "${HOSTNAME} 1"; fi; }
# A container may not know the hosts' names.
own_address() {
  local name address
  name=$(job_hosts | awk '{ print $1; exit }')
  address=$(getent hosts "$name" | awk '{ print $1; exit }')
  case $address in '' | 127.* | ::1 | fe80:*) echo "$name" ;; *) echo "$address" ;; esac
}
# `qdel` and the time limit send USR2 and, after the queue's `notify`, KILL. The notice before the limit is a timer of the job's own. Not
# on several hosts: Grid Engine 8.1.9 waits for ever for word that the others are clean, and keeps all jobs away from them meanwhile.
prepare_job() {
  trap 'kill -TERM $$' USR2
  if [ "$has_trainer" = yes ] && ((nodes == 1 && limit > notice)); then
    (trap 'kill $!' TERM; sleep $((limit - notice)) & wait $! && kill -USR1 $$) &
    # shellcheck disable=SC2064
    trap "kill $! 2> /dev/null" EXIT
  fi
}
# Each process of the first host is a child of the job; qrsh starts the others. Both read the signals that are for their program from
# their input, since qrsh hands on none. Ends as the process that failed first, and with all of them.
start_processes() {
  local host slots i next=0 at=0 code=0 one words self=$BASHPID heard='' signals=$state/signals environment=$run/machine0/environment
  if [ "$(job_hosts | awk '{ print $2 }' | xargs)" != "$(for ((i = 0; i < nodes; i++)); do echo "$processes_of_node"; done | xargs)" ]; then
    say "the parallel environment gave other slots than $processes_of_node on each of $nodes: $(job_hosts | awk '{ print $1 ": " $2 }' | xargs)"
    return 1
  fi
  : > "$signals"
  trap 'heard=yes; echo TERM >> "$signals"' TERM
  trap 'heard=yes; echo USR1 >> "$signals"' USR1
  while read -r host slots; do
    for ((i = 0; i < tasks; i++)); do
      words=("$@" words "$nodes" "$at" "$next" "$i" "$all_tasks" "$tasks" "$host")
      if ((at > 0)); then
        # A task that ends by a signal, or by a code that stands for one, would have Grid Engine end the whole job.
        # shellcheck disable=SC2016
        words=(bash -c 'trap : USR2; . "$0"; "$@"; exit $(($? > 96 ? 1 : $?))' "$environment" "${words[@]}")
        words=(qrsh -inherit -v "DTOOL_RUN_ID=$run_id${SGE_TASK_ID:+,SGE_TASK_ID=$SGE_TASK_ID}" "$host" "$(printf '%q ' "${words[@]}")")
      fi
      # What runs here is in sessions of its own, where Grid Engine's own USR2 does not end it at once.
      # shellcheck disable=SC2016
      setsid bash -c '. "$0"; exec "$@"' "$environment" "${words[@]}" \
        < <(exec setsid tail -n +1 -s 0.2 -f --pid="$self" "$signals" 2> /dev/null) &
      ((next += 1))
    done
    ((at += 1))
  done < <(job_hosts | awk '{ print $1, $2 }')
  while [ -n "$(jobs -pr)" ]; do
    wait -n
    one=$?
    if [ -n "$heard" ] || ((one == 0)); then heard=''; continue; fi  # a signal ends the wait as well
    ((code > 0)) || code=$one
    [ "$on_failure" = leave ] || echo TERM >> "$signals"
  done
  return $((code > 96 && code < 101 ? 1 : code))  # of the job's own codes those have a meaning
}
is_taken() {  # where no process failed by itself: word of it may reach other hosts first
  local i
  for ((i = first; i < first + nodes; i++)); do ! grep -qs '^[1-9][0-9]* $' "$run/machine$i"/ranks/* || return 1; done
  for ((i = 0; i < 20; i++)); do
    if [ -n "$told" ] || ((limit > 0 && SECONDS >= limit - 15)); then return; fi
    sleep 0.5 &
    wait $!
  done
  return 1
}
leave_taken() {  # codes that ask_job knows again
  if ((limit > 0 && SECONDS >= limit - 15)); then exit 98; else exit 97; fi
}
ask_for_checkpoint() { kill -USR1 "$step"; }
put_back() {
  kill -TERM "$step"
  wait "$step"
  exit 99  # Grid Engine puts such a job back into the queue
}

# ---- on the login host
try_job() {
  local job environment
  job=$(cat)
  environment=$(sed -n 's/^#\$ -pe \([^ ]*\) .*/\1/p' <<< "$job")
  if [ -n "$environment" ] && qconf -sp "$environment" 2> /dev/null | grep -qi '^control_slaves *false'; then
    echo "the parallel environment $environment lets jobs start nothing on other hosts (control_slaves FALSE)"
    return 1
  fi
  timeout 40 qsub -w v <<< "$job"
}
may_wait() {  # for hosts that are away just now: they report no load
  [[ $1 == *'no suitable queues'* ]] && qhost 2> /dev/null | awk 'NR > 3 && $7 == "-" { away = 1 } END { exit !away }'
}
hint_of() {
  case $1 in
    *commlib* | *qmaster* | '') echo 'qping and qstat tell whether sge_qmaster is up; ask who runs the cluster' ;;
    *) echo 'qconf -sql lists the queues, qconf -spl the parallel environments, qhost the hosts' ;;
  esac
}
# What the login on the submit host exports, its processes have: Grid Engine's own variables stay those of the job.
submit_job() {
  local options=(-terse -cwd -j y -o job.log)
  # shellcheck disable=SC2086
  (unset TMP TMPDIR HOSTNAME PWD OLDPWD PE PE_HOSTFILE NSLOTS NHOSTS NQUEUES QUEUE REQUEST RESTARTED ${!JOB_*} ${!SGE_TASK*}; export -p; export -fp) > environment
  [ "$members" = 1 ] || options+=(-t "1-$members")
  qsub "${options[@]}" "$@"
}
# Of a job that qstat does not have any more, the accounts tell; the record of the job itself comes after those of its processes.
ask_job() {
  local said reason=''
  said=$(timeout 8 qstat -u "$(id -un)" 2>&1) || { echo "${said:-sge_qmaster does not answer}"; return 1; }
  said=$(grep "^ *$1 " <<< "$said")
  [[ ! $said =~ \ [a-z]*E[a-z]*\  ]] || reason="JobLaunchFailure: $(timeout 8 qstat -j "$1" 2> /dev/null | sed -n 's/^error reason *[0-9]*: *//p' | head -n 1)"
  said=$(reason=$reason awk '
    NF {
      slots = $8 ~ /@/ ? 9 : 8  # no queue has taken what waits
      task = NF > slots && $NF ~ /^[0-9]+$/ ? $NF - 1 : "*"
      state = $5 ~ /E/ ? "failed" : $5 ~ /[qwh]/ ? "pending" : "running"
      split($6, day, "/")
      print task, state, day[3] "-" day[1] "-" day[2] "T" $7, "-", (state == "pending" ? $5 : state == "failed" ? ENVIRON["reason"] : "")
    }' <<< "$said")
  [ -n "$said" ] || said=$(timeout 8 qacct -j "$1" 2> /dev/null | awk '
    { is[$1] = $0; sub(/^[^ ]+ +/, "", is[$1]) }
    $1 == "exit_status" {
      task = is["taskid"] ~ /^[0-9]+ *$/ ? is["taskid"] - 1 : "*"
      why = is["failed"] + 0; code = is["exit_status"] + 0
      state = why == 37 || code == 98 ? "timed_out" : why == 100 || code == 97 ? "cancelled" : why > 0 || code > 0 ? "failed" : "completed"
      split(is["end_time"], d, " ")
      end[task] = d[5] == "" ? "-" : d[3] "-" d[2] "-" d[5] "T" d[4]; what[task] = state; because[task] = why > 0 ? is["failed"] : ""
    }
    END { for (task in what) print task, what[task], "-", end[task], because[task] }')
  printf '%s' "$said"
}
jobs_of_run() {  # by their name, which a start that was cut off has as well
  local said
  said=$(timeout 20 qstat -r -u "$(id -un)" 2>&1) || { echo "$said" >&2; return 1; }
  awk -v name="dtool_$run_id" '/^ *[0-9]+ / { job = $1 } /Full jobname:/ && $3 == name { print job }' <<< "$said" | sort -u
}
cancel_jobs() { timeout 15 qdel "$@"; }
describe_jobs() { timeout 20 qstat -u "$(id -un)" 2>&1 | tail -n 1; }
# Grid Engine ends all processes of a job with it, by a group that they have, but for root's, or where it is told not to. Then a small job
# on each host of the run ends them by dtool-host, which is what has called this here.
end_rest() {
  local host hosts program
  if ((EUID > 0)) && ! qconf -sconf 2> /dev/null | grep -qi 'ENABLE_ADDGRP_KILL=\(false\|0\)'; then return; fi
  program=$(readlink "/proc/$PPID/exe")
  mapfile -t hosts < <(cat ../machine*/node 2> /dev/null | sort -u)
  ! for host in "${hosts[@]}"; do
    (timeout 45 qsub -sync y -cwd -j y -o "swept.$host" -N dtool_sweep -l "hostname=$host" -b y -shell n "$program" end "$run_id" > /dev/null 2>&1 ||
      echo "what is left on $host could not be seen or ended: $(head -n 1 "swept.$host" 2>&1)") &
  done | grep .
}

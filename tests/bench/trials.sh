# SPDX-License-Identifier: MIT
# Sourced by call_trials and named_points: commands of dtool on two lab hosts under strace, and what dtool promises after each,
# whatever failed in it.
#
#   words_of COMMAND            sets `words`: the command line of run, kill, fetch, copy or resume
#   before COMMAND              what it needs
#   traced_on SIDE OPTIONS WORD...  runs the words; strace with these options (a string) follows them, or what sshd of host 1 starts
#   after COMMAND               adds what does not hold to `broken`; $code is the exit code; $killed is 137 where the command was
#                               killed, and -1 where a process on the host was
#   met_by                      names of the processes that met the fault in $work/trace, one a line
# shellcheck shell=bash
# shellcheck source=tests/behaviour/harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/../behaviour/harness.sh"
needs_program strace
needs_isolation
lab 2
connects_anew
killed=0 broken=()

printf 'echo "machine $DTOOL_MACHINE_ID" > "$DTOOL_OUTPUT_DIR/result"; seq 20000 > "$DTOOL_OUTPUT_DIR/rows"; sleep 600\n' >program.sh
git init --quiet . && git add . && git -c user.name=a -c user.email=a commit --quiet -m a
mkdir "$work/data" && seq 100000 >"$work/data/rows" && echo 1 >"$work/data/one"

bearers() {
  for host in 1 2; do
    # A process that holds the port for reports ends by itself.
    # shellcheck disable=SC2016
    on "$host" bash -c 'for environ in $(grep -lsz ^DTOOL_RUN_ID= /proc/[0-9]*/environ); do
      ! grep -qsz "^hold$" "${environ%environ}cmdline" || continue
      [[ -e $environ ]] && tr "\0" " " <"${environ%environ}cmdline" && echo
    done' || true
  done
}
killfiles() { find "$HOME/.dtool/killfiles" -name '[!.]*.killfile' -type f 2>/dev/null || true; }
both_run() { [[ $(bearers | grep -c 'sleep 600') == 2 ]]; }
no_bearer() { [[ -z $(bearers) ]]; }
soon() { local i; for ((i = 0; i < 50; i++)); do ! "$@" || return 0; sleep 0.1; done; return 1; }

start() { expect_exit 0 dtool run --quiet --runs_on "$DTOOL_LAB_HOSTS" -- bash program.sh; }
end_all() {
  [[ -n $(killfiles) ]] || return 0
  "$DTOOL" kill --all --yes --delete --grace 0.2 >"$work/again" 2>&1 || {
    broken "kill failed afterwards: $(cat "$work/again")"
    "$DTOOL" kill --all --forget --yes --delete >/dev/null 2>&1 || true
    find "$HOME/.dtool/killfiles" -name '*.killfile' -delete
  }
}

words_of() {
  case $1 in
    run) words=("$DTOOL" run --runs_on "$DTOOL_LAB_HOSTS" -- bash program.sh) ;;
    kill) words=("$DTOOL" kill --all --yes --delete --grace 0.2) ;;
    fetch) words=("$DTOOL" fetch last "$work/fetched") ;;
    copy) words=("$DTOOL" copy "$work/data" /root/copied --runs_on "$DTOOL_LAB_HOSTS") ;;
    resume) words=("$DTOOL" run --resume last) ;;
  esac
}
tells_its_end() { ! "$DTOOL" status last 2>&1 | grep -v '^DTOOL_' | grep -q ' running'; }
# A run that was killed, as each trial of `resume` finds it.
ended_run() {
  [[ -e $work/ended_run ]] || {
    start
    eventually 10 test -e "$DTOOL_LAB_FOLDER/host2/root/here/experiment_output/$(cat "$out")/rows"
    expect_exit 0 dtool kill --all --yes --delete --grace 0.2
    cp -a "$HOME/.dtool" "$work/ended_run"
  }
  rm -rf "$HOME/.dtool" && cp -a "$work/ended_run" "$HOME/.dtool"
}
before() {
  case $1 in
    run) end_all ;;
    kill) end_all; start ;;
    fetch)
      [[ -n $(killfiles) ]] || { start; sleep 0.5; }
      rm -rf "$work/fetched"
      ;;
    copy) for host in 1 2; do on "$host" rm -rf copied; done ;;
    resume) end_all; ended_run ;;
  esac
}
broken() { broken+=("$*"); }
# What `run` and `run --resume` promise. A fault on a host may end what had started; then it is known.
after_start() {
  if ((code == 0)); then
    ((killed == 137)) || soon both_run || tells_its_end || broken 'exit code 0, but not every machine runs'
    [[ -n $(killfiles) ]] || broken 'exit code 0 without a killfile'
  elif ((code == 2)) || grep -q 'nothing was started\|no process of the run is left' "$err"; then
    soon no_bearer || broken "claims that nothing runs: $(bearers)"
  fi
  [[ -n $(killfiles) ]] || soon no_bearer || broken "a run without a killfile: $(bearers)"
}
after() {
  case $1 in
    run)
      after_start
      end_all
      start
      end_all
      ;;
    kill)
      if ((code == 0)); then
        [[ -z $(killfiles) ]] || broken 'exit code 0, but the killfile is there'
      fi
      if ((code == 0)) || [[ -z $(killfiles) ]] || grep -q 'none is left' "$out"; then no_bearer || broken "claims that none is left: $(bearers)"; fi
      end_all
      ;;
    fetch)
      local machine file
      for machine in 0 1; do
        for file in result rows; do
          if [[ -e $work/fetched/machine$machine/$file ]]; then
            if [[ $file == rows ]]; then cmp -s <(seq 20000) "$work/fetched/machine$machine/$file"; else [[ $(cat "$work/fetched/machine$machine/$file") == "machine $machine" ]]; fi || broken "machine$machine/$file is not whole"
          elif ((code == 0)); then broken "exit code 0 without machine$machine/$file"; fi
        done
      done
      "$DTOOL" fetch last "$work/fetched" >"$work/again" 2>&1 || broken "a second try failed: $(tail -n 3 "$work/again")"
      ;;
    copy)
      local host file there
      for host in 1 2; do
        there=$DTOOL_LAB_FOLDER/host$host/root/copied/data
        for file in rows one; do
          if [[ -e $there/$file ]]; then
            cmp -s "$work/data/$file" "$there/$file" || broken "$file on host $host is not whole"
          elif ((code == 0)); then broken "exit code 0 without $file on host $host"; fi
        done
      done
      "${words[@]}" >"$work/again" 2>&1 || broken "a second try failed: $(tail -n 3 "$work/again")"
      ;;
    resume)
      after_start
      end_all
      # `last` is the run itself, or the one that went on from it.
      "$DTOOL" run --quiet --resume last >"$work/again" 2>&1 || broken "a second try failed: $(tail -n 3 "$work/again")"
      soon both_run || broken 'a second try started nothing'
      end_all
      ;;
  esac
  if ((code > 2 && code != 127 && code != killed)) || grep -q 'terminate called\|AddressSanitizer\|Assertion' "$err"; then broken "ended with $code"; fi
  if ((code)) && ((code != killed)) && [[ ! -s $err ]]; then broken "exit code $code without a message"; fi
  if [[ -e $HOME/.dtool/killfiles ]] && ((killed <= 0)); then
    [[ -z $(find "$HOME/.dtool/killfiles" "$HOME/.dtool/records" -name '.*.??????' -type f 2>/dev/null) ]] || broken 'a half file is left'
  fi
  find "$HOME/.dtool" -name '.*.??????' -type f -delete
}

# The shell that sshd starts on the hosts: where there are options, strace follows it and all that it starts.
for host in 1 2; do
  cat >"$DTOOL_LAB_FOLDER/host$host/root/traced_shell" <<'END'
#!/bin/bash
export SHELL=/bin/bash
[[ -e /root/strace_options ]] || exec bash "$@"
read -ra options </root/strace_options
exec strace -DDD -I 2 -f --decode-pids=comm --quiet=all -o "/root/traces/$$" "${options[@]}" bash "$@"
END
  chmod 755 "$DTOOL_LAB_FOLDER/host$host/root/traced_shell"
  theirs "$host"
done
passwd=$(sed "/^$log_in_user:/ s,[^:]*$,/root/traced_shell," "$DTOOL_LAB_FOLDER/passwd")
echo "$passwd" >"$DTOOL_LAB_FOLDER/passwd"

# A command that waits without end exits with 124.
traced_on() {
  local side=$1 options
  read -ra options <<<"$2"
  shift 2
  rm -f "$work/trace"
  if [[ $side == launcher ]]; then
    { run timeout 120 strace -o "$work/trace" --quiet=all "${options[@]}" "$@"; } 2>/dev/null  # bash tells of a kill
    return
  fi
  on 1 mkdir traces
  # shellcheck disable=SC2016
  on 1 sh -c 'echo "$1" >strace_options' sh "${options[*]}"
  run timeout 120 "$@"
  on 1 rm strace_options
  # A session goes on behind a start.
  [[ $code != 0 || -z $(killfiles) ]] || soon both_run || true
  # shellcheck disable=SC2016
  on 1 sh -c 'i=0; while pids=$(pgrep -x strace) && [ $((i += 1)) -lt 100 ]; do kill $pids 2>/dev/null; sleep 0.02; done; cat traces/*; rm -r traces' >"$work/trace"
}

# A call before which the process was killed has no result.
met_by() {
  sed -nE '/^[0-9]+<[^>]*>/! s/^/0<dtool> /; s/^([0-9]+)<([^>]*)> /\1 \2 /; p' "$work/trace" |
    awk '/\(INJECTED\)/ { print $2 } / = \?$/ { last[$1] = $2 } /\+\+\+ killed by SIGKILL/ && last[$1] { print last[$1] }'
}

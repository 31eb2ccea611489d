# SPDX-License-Identifier: MIT
# Sourced by the behaviour tests: gives each its own lab, the dtool under test, and expectations that say what happened.
#
#   lab N [options]             hosts of this test's own (options of tests/lab up); HOME and DTOOL_LAB_* become the lab's.
#                               Log-ins are an ordinary user's, $log_in_user, whose home is /root; but root's with a scheduler
#   dtool ARGS...               the program under test
#   on HOST COMMAND...          a command on a host, without SSH (HOST is 1, h1 or an address)
#   sudo_on HOST COMMAND...     the same as root
#   theirs HOST [FOLDER]        gives what is in the host's home, or in a folder of it, to the log-in user
#   disk_on HOST OPTIONS FOLDER mounts a disk of the log-in user's there (options of tmpfs, e.g. size=2m)
#   as_root                     before lab: log-ins of this test's lab are root's, and not an ordinary user's
#   expect_exit CODE COMMAND... runs it with stdin empty, its output into the files $out and $err
#   expect_ended CODE PID [WHAT [FILE...]] waits for a command that runs in the background; WHAT is what a failure calls it, and
#                               the files have its output
#   expect_output PATTERN       the last command's stdout has a line that matches (grep -E); likewise
#   expect_no_output, expect_error, expect_no_error
#   expect_equal WANTED GOT     and expect_file PATH, expect_no_file PATH
#   expect_process_with RUN_ID, expect_no_process_with RUN_ID    DTOOL_RUN_ID in any process's environment, on any host
#   json EXPRESSION             a Python expression on `d`, the JSON document in the last command's stdout
#   eventually SECONDS COMMAND...  repeats COMMAND, or an expectation, until it succeeds
#   slurm_lab N                 a lab with Slurm, whose hosts share their home; host 1, which runs no jobs, is $login
#   gridengine_lab N            the same with Grid Engine
#   system_root SUITE           $REPLY is a folder with the files of a release of Debian, for --root
#   signal_rank SIGNAL RANK HOST...  sends it to the trainer's process of that rank on one of these hosts
#   let_h1_reach_the_others     the first host's own ssh gets a key that all hosts take, and knows theirs, as mpirun wants it
#   connects_anew               from here on each command makes its own connections, for tests of how they are made
#   keeps_connections           from here on commands leave them to the next, as they do unless told otherwise: for tests of that
#   table_lines PAGE HEADING     the dtool lines in the tables of a page below the headings that match: for each the exit code that the
#                               page says, or 0, the line, and what the first column has, with tabs between
#   at_end COMMAND              a line of bash for when the test ends, however it does
#   needs_tool_wheels           uv, py-rattler and PyYAML from the package index, the only source that pip then has
#   needs_isolation, needs_program P, needs_file PATH, skip REASON
#
# Each test starts in an empty folder, $work, with an empty HOME in it. A command that fails unasked fails the test.
# shellcheck shell=bash

set -Eeuo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck disable=SC2034
source_folder=$(readlink -f "$here/../..")
test_name=$(basename "$0" .sh)
work=$(mktemp -d "${TMPDIR:-/tmp}/dtool-test-XXXXXX")
out=$work/stdout err=$work/stderr
last_command='' last_code=''
: "${DTOOL:=}"
[[ -z $DTOOL ]] || DTOOL=$(readlink -f "$DTOOL")

# Nothing of the user's: neither ~/.ssh, ~/.dtool nor an agent.
export HOME=$work/home
unset SSH_AUTH_SOCK SSH_AGENT_PID DTOOL_LAB DTOOL_RUN_ID NO_COLOR
mkdir -m 700 "$HOME"
mkdir "$work/here"
cd "$work/here"

dtool() {
  [[ -x $DTOOL ]] || fail "DTOOL does not name the program under test: '$DTOOL'"
  "$DTOOL" "$@"
}

lab() {
  local hosts=$1 environment shared=()
  shift
  [[ ! -x ${DTOOL_TRAINER:-} ]] || shared=(--share "$(dirname "$DTOOL_TRAINER")")
  lab_name=$test_name-$$
  log_in_user=root
  if [[ $logs_in_as_root == no && $("$here/../lab" mode) == isolated && ! " $* " =~ \ --(slurm|gridengine|plain)\  ]]; then
    # shellcheck disable=SC2034
    log_in_user=ann
    shared+=(--user)
  fi
  "$here/../lab" up "$hosts" --name "$lab_name" --owner $$ "${shared[@]}" "$@" >"$work/lab.log" 2>&1 || fail "no lab: $(cat "$work/lab.log")"
  environment=$("$here/../lab" env --name "$lab_name")
  eval "$environment"
  [[ -z ${DTOOL_TEST_COLD:-} ]] || connects_anew
}

slurm_lab() {
  local program
  needs_isolation
  for program in srun munged; do needs_program $program; done
  lab "$1" --slurm --login --shared_home
  # shellcheck disable=SC2034
  login=$(head -n 1 "$DTOOL_LAB_FOLDER/hosts")
}

gridengine_lab() {
  needs_isolation
  needs_program sge_qmaster
  lab "$1" --gridengine --login --shared_home
  # shellcheck disable=SC2034
  login=$(head -n 1 "$DTOOL_LAB_FOLDER/hosts")
}

logs_in_as_root=no
as_root() { logs_in_as_root=yes; }

# With DTOOL_TEST_COLD=1 every test does this unless it says otherwise.
connects_anew() {
  mkdir -p -m 700 "$HOME/.dtool"
  printf '[connections]\nkeep = 0\n' >"$HOME/.dtool/config.toml"
}

keeps_connections() { rm -f "$HOME/.dtool/config.toml"; }

# The processes that keep connections of this test's home folders, one per line.
keepers() { pgrep -f "^dtool keep_connections ($HOME|$work)/" || true; }
end_keepers() {
  local tries
  keepers | xargs -r kill
  for ((tries = 0; tries < 100; tries++)); do
    ! no_keeper_is_left || return 0
    sleep 0.1
  done
  echo "FAILED $test_name: processes that keep connections are left: $(keepers | xargs)" >&2
  return 1
}
no_keeper_is_left() { [[ -z $(keepers) ]]; }
# Counts the logins that all hosts have seen.
logins() { cat "$DTOOL_LAB_FOLDER"/host*/sshd.log | grep -c '^Accepted' || true; }

theirs() { chown -R --reference "$DTOOL_LAB_FOLDER/host$1/root" "$DTOOL_LAB_FOLDER/host$1/root/${2:-}"; }

# The commands of tests/lab on this test's lab: `fault cut h2`.
fault() { "$here/../lab" "$@"; }
on() { "$here/../lab" exec "$@"; }
sudo_on() { "$here/../lab" sudo "$@"; }
# shellcheck disable=SC2016
disk_on() { sudo_on "$1" sh -c 'mount -t tmpfs -o "$1,mode=755,uid=$(stat -c %u /root),gid=$(stat -c %g /root)" tmpfs "$2"' sh "$2" "$3"; }

let_h1_reach_the_others() {
  cp "$HOME/.ssh/id_ed25519" "$HOME/.ssh/known_hosts" "$DTOOL_LAB_FOLDER/host1/root/.ssh/"
  theirs 1 .ssh
}

# Reports what failed, where, and what the last command did, and ends the test.
fail() {
  local frame=1
  while [[ ${BASH_SOURCE[frame]:-} == "${BASH_SOURCE[0]}" ]]; do ((frame += 1)); done
  {
    echo "FAILED $test_name, line ${BASH_LINENO[frame - 1]}: $*"
    if [[ -n $last_command ]]; then
      printf '  last command: %s\n  its exit code: %s\n' "$last_command" "$last_code"
      show stdout "$out"
      show stderr "$err"
    fi
  } >&2
  failed=yes
  exit 1
}

show() {
  [[ -s $2 ]] || { echo "  its $1: empty"; return; }
  echo "  its $1:"
  tail -n 60 "$2" | cut -c 1-500 | sed 's/^/    | /'
}

skip() {
  echo "SKIPPED $test_name: $*"
  exit 77
}

# They are fetched once for a build, as users get them.
needs_tool_wheels() {
  local wheels
  wheels=$(dirname "$DTOOL")/tool_wheels
  exec 9>"$wheels.lock"
  flock 9
  [[ -d $wheels ]] || fetch_tool_wheels "$wheels" >"$work/pip.log" 2>&1 || skip "pip cannot fetch uv and py-rattler: $(tail -n 1 "$work/pip.log")"
  exec 9>&-
  export PIP_NO_INDEX=1 PIP_FIND_LINKS=$wheels
}
fetch_tool_wheels() {
  rm -rf "$1.new"
  /usr/bin/python3 -m venv "$work/venv" || return
  timeout 150 "$work/venv/bin/pip" download --quiet --disable-pip-version-check --retries 1 --timeout 15 -d "$1.new" "uv==$(sed -n 's/^UV = "\(.*\)"$/\1/p' "$source_folder/cli/ready/scripts/python_packages.py")" 'py-rattler==0.28.*' 'PyYAML>=6' &&
    mv "$1.new" "$1"
}
needs_isolation() {
  [[ $("$here/../lab" mode) == isolated ]] || skip 'needs a lab of namespaces, and so root'
}

table_lines() {
  awk -v heading="$2" '
    /^## / { inside = $0 ~ heading }
    inside && /^[|]/ {
      gsub(/\\[|]/, "\001")
      split($0, cell, "|")
      code = match(cell[3], /exit code [0-9]+/) ? substr(cell[3], RSTART + 10, RLENGTH - 10) : 0
      split(cell[2], theirs, "`")
      n = split(cell[3], ours, "`")
      for (i = 2; i <= n; i += 2) {
        line = code "\t" ours[i] "\t" theirs[2]
        gsub("\001", "|", line)
        if (ours[i] ~ /(^| )dtool /) print line
      }
    }' "$1"
}

# In continuous integration the programs of tests/dependencies must not be missing.
needs_program() {
  ! command -v "$1" >/dev/null || return 0
  [[ -z ${CI:-} ]] || fail "$1 is not installed, and CI could have it: tests/dependencies"
  skip "needs $1"
}

needs_file() { [[ -e $1 ]] || skip "needs $1"; }

# Runs a command as expect_exit does, without judging it; sets `code` to its exit code.
run() {
  last_command=$(printf '%q ' "$@")
  last_code=0
  "$@" >"$out" 2>"$err" </dev/null || last_code=$?
  # shellcheck disable=SC2034
  code=$last_code
}

expect_exit() {
  local wanted=$1
  shift
  run "$@"
  [[ $last_code == "$wanted" ]] || fail "exit code $last_code, not $wanted"
}

expect_ended() {
  last_command=${3:-$last_command}
  last_code=0
  wait "$2" || last_code=$?
  [[ $last_code == "$1" ]] || { (($# < 4)) || cat "${@:4}" >&2; fail "the command in the background ended with $last_code, not $1"; }
}

expect_output() { grep -Eq -e "$1" "$out" || fail "no line of stdout matches: $1"; }
expect_no_output() { ! grep -Eq -e "$1" "$out" || fail "a line of stdout matches: $1"; }
expect_error() { grep -Eq -e "$1" "$err" || fail "no line of stderr matches: $1"; }
expect_no_error() { ! grep -Eq -e "$1" "$err" || fail "a line of stderr matches: $1"; }
expect_file() { [[ -e $1 ]] || fail "no file $1"; }
expect_no_file() { [[ ! -e $1 ]] || fail "there is a file $1"; }

expect_equal() {
  [[ $1 == "$2" ]] || fail "$(printf 'not equal\n  wanted: %s\n  got:    %s' "$1" "$2")"
}

# Sets REPLY to a folder with the files of that release of Debian. It is made once for a build and must stay unchanged.
system_root() {
  local roots
  roots=$(dirname "$DTOOL")/test_roots
  mkdir -p "$roots"
  REPLY=$roots/$1
  flock "$roots/$1.lock" "$here/../lab.d/make_root" "$1" "$REPLY" >"$work/root.log" 2>&1 || fail "no files of $1: $(grep -E '^(E|W|Err)[:0-9]' "$work/root.log" | tail -n 8)"
}

# Fails if stdout is anything but one JSON document.
json() {
  /usr/bin/python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$out" "$1" ||
    fail "stdout is no JSON document that has $1"
}

# The processes of a run on all hosts, one per line: a lab's processes are processes of this machine.
processes_with() {
  { grep -lzx "DTOOL_RUN_ID=$1" /proc/[0-9]*/environ 2>/dev/null || true; } | sed 's,^/proc/\([0-9]*\)/.*,\1,'
}

expect_no_process_with() {
  local pids
  pids=$(processes_with "$1" | xargs)
  [[ -z $pids ]] || fail "$(printf 'processes of run %s are left:\n' "$1"; ps -o pid,ppid,stat,args -p "${pids// /,}")"
}

# On the hosts themselves, which see no process of another test's lab.
signal_rank() {
  local host
  for host in "${@:3}"; do
    # shellcheck disable=SC2016
    ! on "$host" bash -c 'for pid in $(pgrep -x dtool-trainer-w); do
      ! tr "\0" "\n" <"/proc/$pid/environ" | grep -qx "RANK=$1" || { kill "-$0" "$pid"; exit; }
    done; exit 1' "$1" "$2" || return 0
  done
  fail "no process of rank $2 on ${*:3}"
}

expect_process_with() { [[ -n $(processes_with "$1") ]] || fail "no process of run $1"; }

eventually() {
  local seconds=$1 began=$SECONDS
  shift
  # Of a busy machine; whatever holds sooner waits no longer. Some wait less than that on purpose.
  ((seconds < 4 || seconds >= 40)) || seconds=40
  # In a subshell, since an expectation that fails ends its shell.
  until ("$@") >/dev/null 2>&1; do
    if ((SECONDS - began >= seconds)); then
      # Once more with output: a failing expectation reports the fault itself, and ends its shell.
      ("$@" || true) || exit 1
      fail "not within $seconds seconds: $*"
    fi
    sleep 0.1
  done
}

# The lab ends with the test, however the test ends; after a SIGKILL the lab's own reaper ends it.
endings=()
at_end() { endings+=("$1"); }
leave() {
  local status=$? ending
  trap - ERR
  set +e
  for ending in "${endings[@]}"; do eval "$ending"; done
  cd /
  end_keepers || status=1
  if [[ -n ${lab_name:-} ]] && ! "$here/../lab" down --name "$lab_name" >"$work/lab.log" 2>&1; then
    cat "$work/lab.log" >&2
    ((status)) || status=1
  fi
  if [[ -n ${DTOOL_KEEP:-} ]]; then echo "kept: $work" >&2; else rm -rf "$work"; fi
  exit "$status"
}
unexpected() {
  [[ -n ${failed:-} ]] || fail "this failed: $1"
}
trap leave EXIT
trap 'unexpected "$BASH_COMMAND"' ERR
trap 'exit 130' INT TERM HUP

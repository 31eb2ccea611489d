#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The messages and helps that people meet most, as whole texts with their exit codes: a change of one is a change of a file in
# tests/behaviour/messages, which `UPDATE=1 tests/behaviour/the_messages_people_meet_most_stay_as_they_are.sh [NAME...]` writes anew.
# A line there is one of these:
#
#   # WORDS     says what the commands below are about
#   + COMMAND   is run first, in the file's own shell, and must succeed; its output is not kept
#   $ COMMAND   is run; its output (both streams, as they come) and `exit CODE` follow. For a new case this line is enough
#
# Each file begins in an empty folder, $HOME/project, with an empty ~/.dtool here and on the hosts, h1 and h2.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program python3
texts=$here/messages
lab 2
mapfile -t address <"$DTOOL_LAB_FOLDER/hosts"
export LC_ALL=C.UTF-8 UPDATE=${UPDATE:-0}
unset DTOOL_MNIST_DIR

# All that differs from run to run and from machine to machine. The blanks that pad such a column go with it. A list of Python's packages
# comes when it is ready.
placeholders() {
  sed -E \
    -e "s,$HOME,\$HOME,g; s,\($HOSTNAME\),(MACHINE),; s,${version//./\\.},VERSION,g; s,\(LibTorch [^)]*\),(LibTorch VERSION)," \
    -e "s,${address[0]//./\\.},ADDRESS1,g; s,${address[1]//./\\.},ADDRESS2,g; s,lab-[a-z-]+-([12])\b,HOSTNAME\1,g; s,(cannot resolve [^:]+: ).*,\1REASON," \
    -e 's,20[0-9]{6}-[0-9]{6}-[0-9a-f]{6},YYYYMMDD-HHMMSS-RANDOM,g' \
    -e 's,20[0-9]{2}-[0-9]{2}-[0-9]{2}([T ])[0-9:]{8},YYYY-MM-DD\1HH:MM:SS,g' \
    -e 's,SHA256:[A-Za-z0-9+/]{43},SHA256:FINGERPRINT,g; s,\b[0-9a-f]{64}\b,HASH,g' \
    -e 's,(seed +)[0-9]{3}[0-9]+,\1SEED,; s,((listens on|listener) +[^ ]*:)[0-9]+,\1PORT,; s,\bport [0-9]{5},port PORT,' \
    -e 's,by [^ ]+@[^ ]+$,by USER@MACHINE,; s,/[^ ]*/dtool run,dtool run,; /^python +[0-9]/d' \
    -e 's,OMP_NUM_THREADS [0-9]+\, [0-9]+ cores?\, [0-9.]+ GiB,OMP_NUM_THREADS N\, N cores\, N GiB,; s,[0-9]+ threads? a rank,N threads a rank,' \
    -e 's,(machine 1 (cores|memory) +-  ).*,\1N,; s,[0-9]+ process(es)? ended,N processes ended,; s,machine [01] \(h[12]\) was ended,machine M (HOST) was ended,' \
    -e 's,^(system|bash|screen|rsync|cores|memory|memory free|home free|code free|GPUs|clock)(  +)[^ !x].*,\1\2VALUE,; s,[0-9]+ (is free),PORT \1,' \
    -e 's,(HH:MM:SS  +)(now|[0-9.]+ [a-z]+ ago) ,\1AGE ,; s,(dtool_host|run_tree) +[0-9.]+ [kM]?B +[0-9]+s  ,\1  SIZE  UNUSED FOR  ,' \
    -e 's,(STATE +)PID .*MEMORY ,\1PID  UP  PROCS  CPU  MEMORY ,; s,(  running +)[0-9]+ .*[KMG]iB ,\1PID  UP  PROCS  CPU  MEMORY ,' \
    -e '/^RUN |HH:MM:SS  AGE|UNUSED|PID  UP/s,   +,  ,g'
}
version=$("$DTOOL" --version)
version=${version#dtool }

dtool() { timeout 60 "$DTOOL" "$@"; }
dtool-trainer() { timeout 60 "$DTOOL_TRAINER" "$@"; }

# For set-ups: the sessions of ended runs take a moment to go, and status shows what is left of them.
sessions_are_gone() { # PROGRAM: of its runs
  local run
  for run in "$HOME/.dtool/killfiles/$1"_*; do eventually 20 expect_no_process_with "$(basename "$run" .killfile)"; done
}

play() { # COMMAND: what a person sees, and the exit code
  local code=0
  (eval "$1") >"$work/seen" 2>&1 </dev/null || code=$?
  [[ -z $(tail -c 1 "$work/seen") ]] || echo >>"$work/seen"
  placeholders <"$work/seen"
  echo "exit $code"
}

replay() { # FILE: the file as it should be
  local lines line i
  mapfile -t lines <"$1"
  for ((i = 0; i < ${#lines[@]}; i++)); do
    line=${lines[i]}
    printf '%s\n' "$line"
    case $line in
      '# '* | '') ;;
      '+ '*) eval "${line#+ }" >"$work/seen" 2>&1 </dev/null || fail "${1##*/}:$((i + 1)): $line: $(cat "$work/seen")" ;;
      '$ '*)
        play "${line#$ }"
        [[ -n ${lines[i + 1]:-} ]] || continue
        until [[ ${lines[++i]} =~ ^exit\ [0-9]+$ ]]; do ((i + 1 < ${#lines[@]})) || fail "${1##*/}: the last text has no exit code"; done
        ;;
      *) fail "${1##*/}:$((i + 1)): neither a comment nor a command: $line" ;;
    esac
  done
}

begin_anew() {
  local host
  end_keepers
  for host in 1 2; do sudo_on $host find /root -mindepth 1 -maxdepth 1 ! -name .ssh -exec rm -rf {} +; done
  rm -rf "$HOME/.dtool" "$HOME/project"
  mkdir "$HOME/project"
  cd "$HOME/project"
}

is_as_written() { # FILE: writes what is seen now into $work/now
  begin_anew
  (replay "$1") >"$work/now" || exit 1
  diff -u --label "${1#"$source_folder/"}" --label now "$1" "$work/now" >&2
}

# A word or an exit code that has changed is told.
for changed in 's/mpirun is/mpirun was/' 's/^exit 2/exit 1/'; do
  printf '$ dtool mpirun\ndtool: mpirun is not a command of dtool\nhint: did you mean run?\nexit 2\n' | sed "$changed" >"$work/changed"
  ! is_as_written "$work/changed" 2>"$work/difference" || fail "no difference was told after $changed"
done

names=("$@")
if ((${#names[@]} == 0)); then
  mapfile -t names < <(cd "$texts" && printf '%s\n' *.txt | sed 's/\.txt$//')
  ((UPDATE || $(cat "$texts"/*.txt | grep -c '^\$ ') >= 250)) || fail 'many of the cases are gone'
fi
different=()
for name in "${names[@]}"; do
  if [[ ! -x ${DTOOL_TRAINER:-} ]] && grep -q 'need dtool-trainer' "$texts/$name.txt"; then continue; fi
  is_as_written "$texts/$name.txt" || different+=("$name")
  ((!UPDATE)) || cp "$work/now" "$texts/$name.txt"
done
((UPDATE || ${#different[@]} == 0)) || fail "these texts have changed: ${different[*]}. If that is meant: UPDATE=1 $0 ${different[*]}"

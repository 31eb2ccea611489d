# shellcheck shell=bash disable=SC2154
# Ends a run on this host. Defined before: answer, run_id, sessions and states (arrays), grace (tenths of a second), spare
# (array of pids that stay, with all their descendants).
# A member of the run is a process of this user that bears the run id, that runs in a session (in the kernel's sense) of
# one of its jobs, that was such before, or whose parent or session leader is one. Names of the run alone would miss what
# rewrote its environment (setproctitle does); parents alone would miss daemons. What bears another run's id is that
# run's, and so are its children, wherever it was started.
# Numbers by the launcher and the script itself: grace $2.
boot=$(< /proc/sys/kernel/random/boot_id)
# The mark says how many seconds this may take. The run's folder was made when the host was looked at, before the run was recorded:
# where it is and the machine's own is not, nothing was started, and the mark sees to it that nothing will be. Where it is not, nothing
# starts any more, and what had been started cannot be known: no folder is made that would look as if it could.
for state in "${states[@]}"; do
  [ -d "${state%/*}" ] || { answer no_folder "${state%/*}"; continue; }
  { [ -d "$state" ] || mkdir "$state" || [ -d "$state" ]; } 2> /dev/null  # a start may make it meanwhile
  { [ -d "$state" ] && { flock -w 30 9; echo $((grace / 10 + 90)) > "$state/killed"; } 9>> "$state/lock"; } 2> /dev/null
  [ -e "$state/killed" ] || answer unmarked "$state"
done
# What a scheduler runs, the scheduler ends: a launcher that has one leaves the way in the state folder.
for state in "${states[@]}"; do
  # shellcheck source=/dev/null
  # runs: what dtool wrote there.
  [ ! -e "$state/end" ] || (cd "$state" && . ./end)
done

declare -A seen=()    # pid and start time of every member that was met
declare -A leader=()  # pid and start time of the jobs' session leaders
keepers=()            # the servers of tmux that hold the jobs' terminals (begin_in_session.sh)
for state in "${states[@]}"; do
  read -r pid start at 2> /dev/null < "$state/process" || continue
  [[ "$at $pid $start" =~ ^"$boot "[0-9]+\ [0-9]+$ ]] || continue
  { stat=$(< "/proc/$pid/stat"); } 2> /dev/null
  read -ra fields <<< "${stat##*) }"
  # Another start time: the pid was given out again, and the session with it.
  [ -z "$stat" ] || [ "${fields[19]}" = "$start" ] && leader[$pid]=$start
  holder=''
  { read -r holder < "$state/holder"; } 2> /dev/null
  [ "$holder" != tmux ] || [ -z "$stat" ] || keepers+=("${fields[1]}")
done

exec 8<> <(:)  # has nothing to read: a pause that costs no process
pause() { read -rt 0.1 -u 8; }

# Sets screens to PID.NAME of the named sessions' screens; `screen -S` alone takes any name that begins alike
find_screens() {
  local name each was_asked
  screens=()
  for name in "${sessions[@]}"; do
    was_asked=''
    while read -r each _; do
      [ "${each#*.}" != "$name" ] || screens+=("$each")
      [ "$each" != end ] || was_asked=yes
    done < <(screen -ls "$name" 2> /dev/null; echo end)
    [ -n "$was_asked" ] || cannot_look
  done
}

# Two lists, of which each fails where it is not whole. Names go through xargs: there may be more than an argument list holds. xargs says
# 123 where a file could not be read, as of a process that ended.
# Prints the processes that have a run's id in their environment: `/proc/PID/environ:DTOOL_RUN_ID=RUN`. A line end in there is no
# line end here, where it could name other processes.
bearers() {
  [ -n "$run_id" ] || return 0
  printf '%s\0' /proc/[0-9]*/environ | LC_ALL=C xargs -0 grep -Hsz '^DTOOL_RUN_ID=' | tr '\n\0' '\1\n'
  [[ "${PIPESTATUS[*]}" =~ ^0\ (0|123)\ 0$ ]]
}
processes() {
  printf '%s\0' /proc/[0-9]*/stat | xargs -0 cat 2> /dev/null
  [[ "${PIPESTATUS[*]}" =~ ^0\ (0|123)$ ]]
}
# Both, with an empty line in between; the last line says `whole` where they are. The environments come before the processes, so that a
# child that is born meanwhile counts as ours.
list_all() {
  local is_whole=''
  bearers && is_whole=yes
  echo
  processes && [ -n "$is_whole" ] && echo whole
}

# the user who started it; /proc/PID itself is root's where a program may not be traced
is_mine() {
  local name uid
  while read -r name uid _; do
    [ "$name" = Uid: ] && break
  done 2> /dev/null < "/proc/$1/status"
  [ "$uid" = "$EUID" ]
}

# For awk: the user who started a process, or nothing where it is gone.
uid_function='function uid_of(pid,  file, line, uid, a) {
  file = "/proc/" pid "/status"; uid = ""
  while ((getline line < file) > 0) if (line ~ /^Uid:/) { split(line, a); uid = a[2]; break }
  close(file)
  return uid
}'

# Prints pid, start time and user of the members that live, `within PID` for those that have called this, and `end` where nothing kept it from seeing all of them: who does not see
# itself has not looked.
members() {
  list_all |
    LC_ALL=C run_id=$run_id awk -v seeds="${screens[*]%%.*}" -v self=$$ -v leaders="${!leader[*]}" -v leader_starts="${leader[*]}" \
    -v known="${!seen[*]}" -v known_starts="${seen[*]}" -v spare="${spare[*]}" -v own_uid="$EUID" \
    "$uid_function"'
    BEGIN {
      n = split(seeds, a); for (i = 1; i <= n; i++) member[a[i]] = 1
      n = split(leaders, a); split(leader_starts, b); for (i = 1; i <= n; i++) since[a[i]] = b[i]
      n = split(known, a); split(known_starts, b); for (i = 1; i <= n; i++) was[a[i]] = b[i]
      n = split(spare, a); for (i = 1; i <= n; i++) spared[a[i]] = 1
      spared[self] = 1
    }
    { line = $0 }
    !are_processes && $0 == "" {
      are_processes = 1
      for (pid in member) delete foreign[pid]
      next
    }
    !are_processes {
      split($0, a, "/"); pid = a[3]
      if (substr($0, index($0, "=") + 1) != ENVIRON["run_id"]) foreign[pid] = 1
      else if (uid_of(pid) == own_uid) member[pid] = 1  # root reads others\047 too, who may write there what they like
      next
    }
    { $0 = rest $0; rest = "" }
    NF < 44 { rest = $0 " "; next }  # a line end in the name of a process
    {
      pid = $1  # dead: in state Z and without a thread besides the main one, which alone may have ended
      if (!sub(/^.*\) /, "") || pid !~ /^[0-9]+$/ || (($1 == "Z" || $1 == "X") && $18 < 2)) next
      if (pid == self) sees_itself = 1
      if (pid in foreign) next
      parent[pid] = $2; session[pid] = $4; start[pid] = $20
      if (($4 in since) && $20 + 0 >= since[$4] + 0) member[pid] = 1
      if ((pid in was) && was[pid] == $20) member[pid] = 1
    }
    END {
      do {
        grown = 0
        for (pid in parent) {
          if (!(pid in member) && ((parent[pid] in member) || (session[pid] in member))) { member[pid] = 1; grown = 1 }
        }
      } while (grown)
      do {
        grown = 0
        for (pid in parent) if (!(pid in spared) && (parent[pid] in spared)) { spared[pid] = 1; grown = 1 }
      } while (grown)
      for (pid in spared) delete member[pid]
      for (p = self; p > 1; p = parent[p]) {
        if (p in member) print "within", p
        delete member[p]
      }
      for (pid in member) if ((pid in start) && (uid = uid_of(pid)) != "") print pid, start[pid], uid
      if (line == "whole" && sees_itself) print "end"
    }'
}

# Whoever cannot look must not say that nothing is there: without the last answer dtool takes none.
cannot_look() {
  echo "the host's processes cannot be looked at: is the limit of processes or of memory reached?" >&2
  exit 1
}

# Sets working and holding: the members that live, without and with what holds the jobs' terminals; strangers: those that the run has
# started as another user, which only root can end; and within, those that this descends from, the uppermost last. Remembers who was met.
look() {
  local pid start uid is_whole='' tries holders=" ${!leader[*]} ${screens[*]%%.*} ${keepers[*]} "
  for ((tries = 0; tries < 3; tries++)); do
    working=() holding=() strangers=() within=()
    while read -r pid start uid; do
      case $pid in
        end) is_whole=yes; continue ;;
        within) within+=("$start"); continue ;;
      esac
      seen[$pid]=$start
      if [ "$uid" != "$EUID" ] && [ "$EUID" != 0 ]; then
        strangers+=("$pid")
        continue
      fi
      case $holders in *" $pid "*) holding+=("$pid") ;; *) working+=("$pid") ;; esac
    done < <(members)
    [ -z "$is_whole" ] || break
    pause
  done
  [ -n "$is_whole" ] || cannot_look
  living=("${working[@]}" "${holding[@]}")
}

wait_for_end() {  # $1: of whom: working, holding or living; $2: tenths of a second
  # runs: names that stand below.
  local -n whom=$1
  local now end
  read -r now _ < /proc/uptime
  for ((end = 10#${now/./} + $2 * 10; ${#whom[@]} != 0 && 10#${now/./} < end; )); do
    pause
    look
    read -r now _ < /proc/uptime
  done
}

# What a run hands to a server of the user's that was there before it, tmux or the user's systemd, has neither its environment nor its
# parents. Tells of such servers with what began in them after the run; not of the terminal in which this is asked for.
tell_unseen() {
  local since='' start server pid count words name was_seen=''
  local -A counts=() words_of=()
  for start in "${leader[@]}"; do
    if [ -z "$since" ] || [ "$start" -lt "$since" ]; then since=$start; fi
  done
  [ -n "$since" ] || return 0
  while read -r server pid; do
    [ "$server" != end ] || was_seen=yes
    { [[ $server =~ ^[0-9]+$ ]] && is_mine "$server" && is_mine "$pid"; } || continue
    counts[$server]=$((${counts[$server]-0} + 1))
    [ "${counts[$server]}" -gt 3 ] || words_of[$server]+=", $pid $(tr '\0' ' ' 2> /dev/null < "/proc/$pid/cmdline" | tr -cd '[:print:]' | head -c 60)"
  done < <(list_all | LC_ALL=C awk -v self=$$ -v since="$since" '
    { line = $0 }
    !are_processes && $0 == "" { are_processes = 1; next }
    !are_processes { split($0, a, "/"); of_a_run[a[3]] = 1; next }
    { $0 = rest $0; rest = "" }
    NF < 44 { rest = $0 " "; next }
    {
      pid = $1; comm = $0
      if (!sub(/^.*\) /, "") || pid !~ /^[0-9]+$/ || (($1 == "Z" || $1 == "X") && $18 < 2)) next
      parent[pid] = $2; start[pid] = $20
      if (pid != 1 && comm ~ /^[0-9]+ \((tmux: server|screen|systemd)\) /) is_server[pid] = 1
    }
    function server_of(pid,  steps) {  # sets top: its ancestor, or itself, that is a child of the server
      top = pid
      for (steps = 0; (top in parent) && steps < 1000; steps++) {
        if (parent[top] in is_server) return parent[top]
        top = parent[top]
      }
      return ""
    }
    END {
      if (server_of(self) != "") own = top
      for (pid in parent) {
        if (start[pid] + 0 < since + 0 || (pid in of_a_run) || (server = server_of(pid)) == "" || top == own) continue
        print server, pid
      }
      if (line == "whole") print "end"
    }' | sort -n)
  [ -n "$was_seen" ] || cannot_look
  for server in "${!counts[@]}"; do
    count=${counts[$server]} words=${words_of[$server]#, }
    read -r name 2> /dev/null < "/proc/$server/comm" || continue
    [ "$count" -le 3 ] || words+=', …'
    answer unseen "${name%: server} (pid $server) has $count process$([ "$count" = 1 ] || echo es) that began after the run: ${words%% }"
  done
}

forced=0
find_screens
look
if [ ${#living[@]} != 0 ]; then
  # Screens and session leaders come last: with one of them the terminal goes, and what handles TERM gets a HUP in the midst
  # of its last work.
  [ ${#working[@]} = 0 ] || kill -TERM "${working[@]}" 2> /dev/null
  wait_for_end working "$grace"
  [ ${#holding[@]} = 0 ] || kill -TERM "${holding[@]}" 2> /dev/null
  wait_for_end holding 5
  find_screens
  for screen in "${screens[@]}"; do
    case " ${within[*]} " in *" ${screen%%.*} "*) continue ;; esac
    screen -S "$screen" -X quit > /dev/null 2>&1
  done
  look
  forced=${#living[@]}
  for ((round = 0; round < 10 && ${#living[@]} != 0; round++)); do
    kill -KILL "${living[@]}" 2> /dev/null
    wait_for_end living 5
  done
  screen -wipe > /dev/null 2>&1
fi
wait_for_end strangers 10  # with its terminal or its parent some of them go
answer ended $((${#seen[@]} - ${#living[@]} - ${#strangers[@]}))
answer forced "$forced"
command_of() { tr '\0' ' ' 2> /dev/null < "/proc/$1/cmdline" | head -c 200; }
for pid in "${living[@]}"; do answer left "$pid $(command_of "$pid")"; done
for pid in "${strangers[@]}"; do answer left "$pid $(command_of "$pid") (another user's, which only that user or root can end)"; done
# Not where the run's own session ends the rest of the run.
if [ ${#within[@]} != 0 ] && [ ${#spare[@]} = 0 ]; then
  answer left "${within[-1]} $(command_of "${within[-1]}") (it has called this very dtool kill, which is part of the run: call it from elsewhere)"
fi
tell_unseen
answer looked_again yes

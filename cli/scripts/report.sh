# shellcheck shell=bash disable=SC2154
# Carries a machine's reports (lines on standard input, of which the newest counts) to the run's coordinator and its
# decision back: once a pause, and at once when there is something new. Arguments: place, address, port, pause. Prints
# `decision TEXT` when there is another one, and `lost TEXT` while the coordinator is not there (any more).
place=$1 address=$2 port=$3 pause=$4
trap '' HUP  # it tells even that its session was closed
LC_ALL=C
read -r secret < token
report='' decision='' line='' state='' tries=0

# Sets now, in seconds since the boot: a clock that is set meanwhile does not count.
look_at_clock() { read -r now _ < /proc/uptime; now=${now%.*}; }

# Sets reply to `= DECISION`, or to why there is none.
post() {
  exec 4< <({ exec 3<> "/dev/tcp/$address/$port" && printf '%s %s %s\n' "$secret" "$place" "$report" >&3 && IFS= read -r line <&3 && printf '= %s\n' "$line"; } 2>&1)
  IFS= read -rt 5 -u 4 reply || reply='no answer'
  kill "$!" 2> /dev/null
  exec 4<&-
}

look_at_clock
heard=$now looked_at=$now
while :; do
  IFS= read -rt "$pause" part
  status=$?
  line+=$part  # the time may run out in the middle of one
  case $status in
    0)
      report=$line line=''
      read -r _ state _ <<< "$report"
      ;;
    1)  # the end of the input is the end of the session's process
      [ "$state" != running ] || report="${report%% *} failed 137 the session on machine $place is gone: it was killed"
      ((++tries < 5)) || exit
      ;;
  esac
  [ -n "$report" ] || continue
  post
  look_at_clock
  # A round takes no longer; this process was frozen, which says nothing of machine 0.
  ((now - looked_at <= pause + 15)) || heard=$now refused_since=''
  looked_at=$now
  case $reply in
    "= $decision") heard=$now refused_since='' ;;
    '= '*)
      heard=$now refused_since='' decision=${reply#= }
      echo "decision $decision"
      ;;
    *refused*)
      : "${refused_since:=$now}"
      ((now - refused_since < 5)) || echo "lost nothing listens at $address:$port: the session on machine 0 is gone"
      ;;
    *) ((now - heard < 60)) || echo "lost no answer from machine 0 at $address:$port for 60 s" ;;
  esac
  if [ "$tries $state" = '1 running' ]; then  # nobody else is there to end the machine's part
    bash ./end_processes "$$" > ended 2>&1
    report=${report/ failed / gone } state=gone
    continue
  fi
  if [ "$tries" != 0 ] || [ "$state" = gone ]; then
    case $reply in '= '*) exit ;; esac
    ((++tries < 5)) || exit
    sleep 1
  fi
done

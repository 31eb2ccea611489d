# shellcheck shell=bash disable=SC2154
# Carries a machine's reports (lines on standard input, of which the newest counts) to the run's coordinator (take_reports_perl.pl)
# and its decision back: once a pause, and at once when there is something new. Arguments: place, address, port, pause, by the plan.
# Prints `decision TEXT` when there is another one, and `lost TEXT` while the coordinator is not there (any more). Follows words.sh.
#
# Each side proves that it knows the run's token, and neither says it: `MAC PLACE CHALLENGE NONCE REPORT` goes there, and
# `MAC taken|again CHALLENGE DECISION` comes back. A MAC is the HMAC-SHA256 with the token of `report ` and all that follows it, or of
# `decision PLACE NONCE ` and all that follows it. The challenge is the coordinator's, and another one for each report that it
# takes; with `again` it only tells which it is. So nobody else's words count, nor words that were overheard.
# Numbers by the plan: pause.
place=$1 address=$2 port=$3 pause=$4
trap '' HUP  # it tells even that its session was closed
LC_ALL=C
report='' decision='' line='' state='' tries=0 challenge=00000000000000000000000000000000

# Sets now, in seconds since the boot: a clock that is set meanwhile does not count.
look_at_clock() { read -r now _ < /proc/uptime; now=${now%.*}; }

# Sets inner_pad and outer_pad, the token's part in a MAC, as printf's format.
read_token() {
  local secret i code
  read -r secret < token
  [[ $secret =~ ^[0-9a-f]{32,64}$ ]] || return
  inner_pad='' outer_pad=''
  for ((i = 0; i < 64; i++)); do
    code=0
    ((i >= ${#secret})) || printf -v code %d "'${secret:i:1}"
    printf -v inner_pad '%s\\x%02x' "$inner_pad" $((code ^ 0x36))
    printf -v outer_pad '%s\\x%02x' "$outer_pad" $((code ^ 0x5c))
  done
}

# Sets mac to the HMAC of $1. Nothing secret is an argument, printf being bash's own.
# shellcheck disable=SC2059
set_mac() {
  local inner bytes='' i
  read -r inner _ < <(exec sha256sum < <(printf "$inner_pad" && printf %s "$1"))
  for ((i = 0; i < 64; i += 2)); do bytes+="\\x${inner:i:2}"; done
  read -r mac _ < <(exec sha256sum < <(printf "$outer_pad$bytes"))
}

# Prints the coordinator's answer without its MAC, `unproven` where somebody else's came, or why there is none.
exchange() {
  local nonce text said
  read -r nonce < /proc/sys/kernel/random/uuid
  nonce=${nonce//-/}
  text="$place $challenge $nonce $report"
  set_mac "report $text"
  exec 3<> "/dev/tcp/$address/$port" && printf '%s %s\n' "$mac" "$text" >&3 && IFS= read -rn 70000 said <&3 || return
  set_mac "decision $place $nonce ${said#* }"
  if [[ $said =~ ^[0-9a-f]{64}\ (taken|again)\ [0-9a-f]{32}\ . ]] && [ "${said%% *}" = "$mac" ] && is_decision "${said#* * * }"; then
    printf '%s\n' "${said#* }"
  else
    echo unproven
  fi
}

# Sets reply to `= DECISION`, or to why there is none.
post() {
  local tries
  for ((tries = 0; tries < 2; tries++)); do  # the second with the challenge that the first was told
    exec 4< <(exchange 2>&1)
    IFS= read -rt 5 -u 4 reply || reply='no answer'
    kill "$!" 2> /dev/null
    exec 4<&-
    [[ $reply =~ ^(taken|again)\ ([0-9a-f]{32})\ (.*)$ ]] || return
    challenge=${BASH_REMATCH[2]} reply="= ${BASH_REMATCH[3]}"
    [ "${BASH_REMATCH[1]}" = again ] || return
  done
  reply='no answer'
}

if ! read_token || ! command -v sha256sum > /dev/null; then
  echo "lost the token or sha256sum is missing on machine $place: nobody hears of it"
  exit
fi
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
  ((now - looked_at <= pause + 15)) || heard=$now refused_since='' unproven_since=''
  looked_at=$now
  case $reply in
    "= $decision") heard=$now refused_since='' unproven_since='' ;;
    '= '*)
      heard=$now refused_since='' unproven_since='' decision=${reply#= }
      echo "decision $decision"
      ;;
    *refused*)
      : "${refused_since:=$now}"
      ((now - refused_since < 5)) || echo "lost nothing listens at $address:$port: the session on machine 0 is gone"
      ;;
    *)
      if [ "$reply" = unproven ]; then : "${unproven_since:=$now}"; fi
      if [ -n "${unproven_since-}" ] && { [ -z "$decision" ] || ((now - heard >= 60)); }; then
        echo "lost what answers at $address:$port does not prove that it is the session on machine 0"
      elif ((now - heard >= 60)); then
        echo "lost no answer from machine 0 at $address:$port for 60 s"
      fi
      ;;
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

# shellcheck shell=bash disable=SC2154
# Tells this host's clock, and tries whether it reaches the listener of listen.sh. Defined before: answer, address (or
# empty: the clock alone), port, question and reply (the words that both sides have to say), seconds (to wait for it).
answer clock "$(date +%s.%N)"
[ -n "$address" ] || exit 0
numeric=$(getent ahosts "$address" 2> /dev/null | awk 'NR == 1 { print $1 }')
answer interface "$(ip -o route get "${numeric:-$address}" 2> /dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p')"
# shellcheck disable=SC2016
said=$(printf '%s\n' "$question" | timeout "$seconds" bash -c 'read -r question && exec 3<> "/dev/tcp/$1/$2" && printf "%s\n" "$question" >&3 &&
  IFS= read -rn 100 line <&3 && printf "%s\n" "$line"' bash "$address" "$port" 2>&1)
case $?/$said in
  0/"$reply") answer reached yes ;;
  0/*) answer fault 'something else answers there' ;;
  124/*) answer fault 'no answer' ;;
  *'Connection refused'*) answer fault 'connection refused' ;;
  *'No route to host'*) answer fault 'no route to host' ;;
  *'Network is unreachable'*) answer fault 'network is unreachable' ;;
  1/) answer fault 'something else listens there' ;;
  *) answer fault "${said##*: }" ;;
esac

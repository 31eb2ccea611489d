# shellcheck shell=bash disable=SC2154
# Tells this host's clock, and tries whether it reaches the listener of listen.sh. Defined before: answer, address (or
# empty: the clock alone), port, token, seconds (to wait for it).
answer clock "$(date +%s.%N)"
[ -n "$address" ] || exit 0
numeric=$(getent ahosts "$address" 2> /dev/null | awk 'NR == 1 { print $1 }')
answer interface "$(ip -o route get "${numeric:-$address}" 2> /dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p')"
# shellcheck disable=SC2016
said=$(timeout "$seconds" bash -c 'exec 3<> "/dev/tcp/$1/$2" && read -r line <&3 && echo "$line"' bash "$address" "$port" 2>&1)
case $?/$said in
  0/"$token") answer reached yes ;;
  124/*) answer fault 'no answer' ;;
  *'Connection refused'*) answer fault 'connection refused' ;;
  *'No route to host'*) answer fault 'no route to host' ;;
  *'Network is unreachable'*) answer fault 'network is unreachable' ;;
  0/*) answer fault 'something else answers there' ;;
  *) answer fault "${said##*: }" ;;
esac

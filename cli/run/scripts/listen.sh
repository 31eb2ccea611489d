# shellcheck shell=bash disable=SC2154
# Listens for a moment where rank 0 will; reach.sh tries it, and both prove themselves: who asks has to say one word, and is told the
# other. Defined before: answer, address, port, question and reply (the two words), seconds (after which the listener ends by itself),
# answer_with_perl and answer_with_python (programs).
if command -v perl > /dev/null; then
  command=(perl -e "$answer_with_perl")
elif command -v python3 > /dev/null; then
  command=(python3 -c "$answer_with_python")
else
  answer no_tool yes
  exit
fi
# The interface that has the address: the route to oneself is lo.
answer interface "$(ip -o addr show 2> /dev/null | awk -v prefix="$address/" 'index($4, prefix) == 1 { print $2; exit }')"
said=$(mktemp)
exec 3< <(printf '%s %s\n' "$question" "$reply")  # no argument, which others could see
timeout "$seconds" "${command[@]}" "$port" "$address" > "$said" 2>&1 <&3 3<&- &
listener=$!
exec 3<&-
disown
for ((try = 0; try < 100; try++)); do
  if [ -s "$said" ] || ! kill -0 "$listener" 2> /dev/null; then break; fi
  sleep 0.05
done
if grep -q '^listens$' "$said"; then
  answer listener "$listener"
else
  kill "$listener" 2> /dev/null
  answer fault "$(cat "$said")"
fi
rm -f "$said"

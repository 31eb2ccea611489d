#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Of hosts that see one folder one takes the files of a copy. If it is cut off meanwhile, another one goes on from what has come, and the copy fails
# for the lost host alone.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 3
link=$(ip -o route get "${DTOOL_LAB_HOSTS%%,*}" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
seen_by_all=$work/shared # hosts see this machine's /tmp
aside="$seen_by_all/.~dtool~copy-0"
size=200000000
mkdir data
head -c "$size" /dev/urandom >data/large
echo small >data/small
part() { find "$aside/parts" -type f ! -name '*.sum' -printf '%s\n' 2>/dev/null | sort -n | tail -n 1; }
a_parcel_is_there() { (($(part) + 0 > 70000000)); }

tc qdisc replace dev "$link" root tbf rate 200mbit burst 128kbit latency 400ms
"$DTOOL" copy --json --runs_on "$DTOOL_LAB_HOSTS" data "$seen_by_all" >"$out" 2>"$err" </dev/null &
launcher=$!
eventually 60 a_parcel_is_there
holder=$(sed -n 3p "$aside/owner")
fault cut "h$((holder + 1))"
began=$(date +%s)
tc qdisc del dev "$link" root
expect_ended 1 "$launcher" 'dtool copy, whose host for the shared folder is lost'
took=$(($(date +%s) - began))
((took < 80)) || fail "it took $took s"
expect_error "^  $(sed -n $((holder + 1))p "$DTOOL_LAB_FOLDER/hosts"): "
expect_equal "$holder" "$(json '" ".join(str(i) for i, h in enumerate(d["hosts"]) if h.get("error"))')"
# What had come was not sent again.
(($(json 'sum(h["sent_bytes"] for h in d["hosts"])') <= size + 1000)) || fail 'what had come was sent again'
cmp data/large "$seen_by_all/data/large"
expect_equal small "$(cat "$seen_by_all/data/small")"
expect_equal '' "$(find "$seen_by_all" -name '.~dtool~*')"

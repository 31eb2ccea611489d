#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Arguments, values of --export, paths and file names arrive at the hosts as they were typed, whatever they hold.
# shellcheck disable=SC1003,SC2016,SC2088
source "$(dirname "$0")/harness.sh"
needs_file /usr/bin/python3
lab 2

words=('' ' ' 'a b' "it's" '"double"' '$HOME $(id) `id`' '\' 'back\\slash\n' $'line\nend\n' -n --follow -- '*' '~' '~/x' '?[a-z]{1,2}' '#x' '!!' '%s%%' 'a=b' '&& false' ';' '|' '<(x)'
  'Grüße, 世界 🚀' $'tab\there' $'\x01\x7f' "-e'\"\$\\ " while '{addr}' '{hosts}' "$(printf '%3000s' x)")
cat >show.py <<'END'
import json, os, sys
names = ['OUR_VALUE', 'OTHER']
with open(os.path.join(os.environ['DTOOL_OUTPUT_DIR'], 'seen'), 'w') as file:
    json.dump({'words': sys.argv[1:], 'folder': os.environ['DTOOL_CODE_DIR'], 'sourced': os.environ.get('SOURCED'),
               'values': [os.environ.get('V%d' % i) for i in range(len(sys.argv) - 1)]}, file)
END
odd=$' it\'s "$HOME" `id` \\ *\n~ é'
exports=()
for i in "${!words[@]}"; do exports+=(--export "V$i=${words[i]}"); done
for host in 1 2; do on "$host" bash -c 'printf "%s\n" "SOURCED=\$0" "export SOURCED=\"yes \$((1 + 1))\"" >"$1"' bash "/root/activate$odd"; done

for base in '' "-folder"; do
  mkdir -p -- "$work/here/$base$odd"
  cp show.py -- "$work/here/$base$odd/show.py"
  cd -- "$work/here/$base$odd"
  expect_exit 0 timeout 60 "$DTOOL" run --json --follow --runs_on "$DTOOL_LAB_HOSTS" "${exports[@]}" --env_activate_path "~/activate$odd" \
    --code_path "~/code$base$odd" --output_dir "-out$odd" --extra_tag "$odd" --exclude "x$odd" -- /usr/bin/python3 show.py "${words[@]}"
  for id in 0 1; do
    folder=$(json "d['machines'][$id]['output_folder']")
    on $((id + 1)) bash -c 'cat -- "${1/#~/$HOME}/seen"' bash "$folder" >"$work/seen"
    /usr/bin/python3 - "$work/seen" "/root/code$base$odd" "${words[@]}" <<'END' || fail 'something else arrived'
import json, sys
seen = json.load(open(sys.argv[1]))
folder, words = sys.argv[2], sys.argv[3:]
for name, wanted in (('words', words), ('values', words), ('folder', folder), ('sourced', 'yes 2')):
    if seen[name] != wanted:
        sys.exit('%s: wanted %r, got %r' % (name, wanted, seen[name]))
END
  done
done
cd "$work/here"

# The experiment's file name, and every word of its tables
printf 'workload = "x"\n[a]\n"odd \\"key\\"" = """%s"""\n' $'multi\nline $HOME \\\\ \'' >"exp$odd.toml"
expect_exit 0 timeout 60 "$DTOOL" run --json --follow --runs_on "$DTOOL_LAB_HOSTS" --config_kwargs '{"a":{"b":"it'"'"'s \"x\" $HOME \\ \n é"}}' \
  "exp$odd.toml" -- bash -c 'cat "$DTOOL_EXPERIMENT" > "$DTOOL_OUTPUT_DIR/seen"'
folder=$(json "d['machines'][1]['output_folder']")
on 2 bash -c 'cat -- "${1/#~/$HOME}/seen"' bash "$folder" >"$work/seen"
/usr/bin/python3 - "$work/seen" <<'END' || fail 'another experiment arrived'
import sys, tomllib
seen = tomllib.load(open(sys.argv[1], 'rb'))
wanted = {'workload': 'x', 'a': {'odd "key"': "multi\nline $HOME \\ '", 'b': 'it\'s "x" $HOME \\ \n é'}}
if seen != wanted:
    sys.exit('wanted %r, got %r' % (wanted, seen))
END
expect_exit 0 timeout 60 "$DTOOL" kill --all --yes --delete

# Through other log-in shells, too; in tcsh no word has a line end.
needs_isolation
needs_program fish
for shell in fish tcsh; do
  [[ -x /usr/bin/$shell ]] || continue
  sudo_on 1 sh -c 'sed "s,^\(ann:.*\):/bin/.*,\1:/usr/bin/$1," /etc/passwd >/tmp/passwd.$$; cat /tmp/passwd.$$ >/etc/passwd; rm /tmp/passwd.$$' sh $shell
  passed=()
  for word in "${words[@]}"; do [[ $word == *$'\n'* && $shell == tcsh ]] || passed+=("$word"); done
  expect_exit 0 dtool command --runs_on h1 --json -- printf '%s|' "${passed[@]}"
  expect_equal "$(printf '%s|' "${passed[@]}")" "$(json 'd["hosts"][0]["stdout"]')"
done

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# docs/cli.md has every command, flag and --json field that dtool has, and no flag that it has not. docs/configuration.md says of every
# keyword of `ssh -G` whether it counts.
source "$(dirname "$0")/harness.sh"
page=$source_folder/docs/cli.md

section() { sed -n "/^## $1\$/,/^## /p" "$page"; }
flags_of_help() { grep -Eo '^ {2,6}(-[A-Za-z],)*--[a-z_,-]+' "$out" | tr -s ' ,' '\n' | { grep '^--' || true; }; }
flags_of_page() { { grep -Eo '`--[a-z_]+' || true; } | tr -d '`' | sort -u; }

expect_exit 0 dtool --help
mapfile -t commands < <(sed -n '/^[A-Za-z]*ommands:/,$p' "$out" | sed -n 's/^  \([a-z_]\{1,\}\)  .*/\1/p')
expect_equal 'attach check clean command completion config copy diff disconnect exec fetch forward hosts install kill list logs plot rerun run show ssh ssh_config status tensorboard trust' "$(printf '%s\n' "${commands[@]}" | sort | xargs)"

common=$(section 'Flags of every command'; section 'Flags for hosts')
all=$work/all
flags_of_help >"$all"
for command in "${commands[@]}"; do
  expect_exit 0 dtool "$command" --help all
  expect_equal '' "$(awk 'length($0) > 80' "$out")"
  own=$(section "dtool $command")
  flags=$(flags_of_help)
  [[ -n $flags ]] || fail "no flag was found in this help"
  echo "$flags" >>"$all"
  while read -r flag; do
    grep -qE -- "\`$flag( |\`|\[)" <<<"$own$common" || fail "docs/cli.md, dtool $command: $flag is not there"
  done <<<"$flags"
  while read -r flag; do
    grep -qxF -- "$flag" <<<"$flags" || fail "docs/cli.md, dtool $command: there is no $flag"
  # An item of a list says first which flags it is about: "- `--x`, `--y N`: what they do".
  done < <(awk '/^- `-/ { match($0, /`:( |$)/); print substr($0, 1, RSTART) }' <<<"$own" | flags_of_page)
done
while read -r flag; do
  grep -qxF -- "$flag" "$all" || fail "docs/cli.md: no command has $flag"
done < <(flags_of_page <"$page")

expect_documented_fields() {
  local field
  while read -r field; do
    grep -qF "\`$field\`" "$page" || fail "docs/cli.md: the field $field is not there"
  done < <(sed -n 's/^ *"\([a-z_]*\)":.*/\1/p' "$out" | sort -u)
}
mkdir code
echo true >code/train.sh
cd code
expect_exit 0 dtool run --dry_run --json -- bash train.sh
expect_documented_fields
expect_exit 0 dtool run --json --follow -- bash train.sh
expect_documented_fields
expect_exit 1 dtool command --json --runs_on 'local,nobody@127.0.0.1:1' --command true
expect_documented_fields
expect_exit 0 dtool trust --json --runs_on local
expect_documented_fields
expect_exit 0 dtool check --json --no_trainer --runs_on local
expect_documented_fields
expect_exit 0 dtool list --json
expect_documented_fields
expect_exit 0 dtool show --json
expect_documented_fields
expect_exit 0 dtool diff bash bash --json
expect_documented_fields
expect_exit 0 dtool fetch --json
expect_documented_fields
expect_exit 0 dtool logs --json
expect_documented_fields
expect_exit 0 dtool status --json
echo '{"event":"step","step":1,"loss":1}' >metrics.jsonl
expect_exit 0 dtool plot --file metrics.jsonl --json
expect_documented_fields
expect_exit 0 dtool completion bash --json
expect_documented_fields
expect_exit 0 dtool kill --all --delete --json
expect_documented_fields

while read -r keyword _; do
  grep -qiE "\`[^\`]*\b$keyword\b" "$source_folder/docs/configuration.md" || fail "docs/configuration.md: the keyword $keyword of ssh is not there"
done < <(ssh -G -F none host)

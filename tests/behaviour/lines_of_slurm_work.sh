#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every dtool line of Slurm's table in docs/coming_from.md works as it stands there, pasted one after the other on a login host; srun's
# own line prints the same.
source "$(dirname "$0")/harness.sh"
slurm_lab 3
ln -s "$DTOOL" "$HOME/bin/dtool"
printf '%s\n' '#!/bin/sh' 'echo "rank $RANK, seed $DTOOL_SEED, $SLURM_JOB_PARTITION, $SLURM_CPUS_PER_TASK, $SLURM_MEM_PER_NODE, $CUDA_VISIBLE_DEVICES"' >tool
chmod +x tool

lines=0
while IFS=$'\t' read -r wanted line theirs; do
  # What is cancelled runs.
  if [[ $theirs == scancel* ]]; then
    expect_exit 0 dtool run --launcher slurm --json -- sleep 1000
    id=$(json 'd["run_id"]')
    cancelled=$(json 'd["job"]')
    eventually 30 expect_process_with "$id"
  fi
  expect_exit "$wanted" timeout 60 bash -c "$line"
  ((lines += 1))
  echo "$line" >>"$work/lines"
  cat "$out" "$err" >"$work/out.$lines"
  if [[ $theirs == srun\ *\ hostname ]]; then
    ours=$(sed 's/^machine[01] r[0-3]: //' "$out" | sort)
    expect_exit 0 timeout 60 bash -c "$theirs"
    expect_equal "$(sort "$out")" "$ours"
  fi
done < <(table_lines "$source_folder/docs/coming_from.md" '^## Slurm$')
((lines >= 9)) && [[ ${ours:-} && ${cancelled:-} ]] || fail "only $lines lines were found, or not those of srun and scancel"

# $1: a line of the page. $2: how many lines of its output match $3.
printed() {
  local number
  number=$(grep -nxF -m 1 -e "$1" "$work/lines" | cut -d : -f 1) || fail "the page has no line $1"
  expect_equal "$2 of $1" "$(grep -cE -e "$3" "$work/out.$number" || true) of $1"
}
printed 'dtool list --state' 3 '^tool_'
printed 'dtool status last' 3 '^[0-2] '
printed 'dtool logs last -f' 3 ': rank 0, seed [123], lab, '
printed 'dtool show last' 1 ' --launcher slurm '
printed 'dtool kill last --yes' 1 "^$id: job $cancelled cancelled, .*none is left"
expect_no_process_with "$id"
expect_exit 0 dtool logs tool -f

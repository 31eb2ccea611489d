#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every dtool line in the tables of docs/coming_from.md but Slurm's works as it stands there, pasted one after the other; a whole line of
# ClusterShell or mpirun beside it prints the same.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program mpirun
needs_program script
for module in ClusterShell torch.distributed.run; do
  /usr/bin/python3 -c "import $module" 2>/dev/null || needs_program "python3 with $module"
done
lab 3 --private_tmp
let_h1_reach_the_others

printf '%s\n' 'h1 slots=2' 'h2 slots=2' >hosts
echo 'LR=0.3' >.deepspeed_env
printf '%s\n' '#!/bin/sh' 'echo "rank ${RANK:-$OMPI_COMM_WORLD_RANK} with $LR"' >tool
# In one piece, or two ranks' lines may run into each other under torchrun.
printf '%s\n' 'import os' 'os.write(1, "{RANK} {WORLD_SIZE} {OMP_NUM_THREADS} {LR}\n".format(**{"LR": "-"} | os.environ).encode())' >train.py
chmod +x tool
mkdir -p "$HOME/.dtool"
printf '%s\n' '[groups]' 'lab = "h[1-2]"' >>"$HOME/.dtool/config.toml"
for host in 1 2; do
  bin=$DTOOL_LAB_FOLDER/host$host/root/bin
  mkdir "$bin"
  printf '%s\n' '#!/bin/sh' 'for gpu in 0 1; do echo "GPU $gpu: A (UUID: GPU-$gpu$gpu)"; done' >"$bin/nvidia-smi"
  # Debian's torchrun 1.13 fails on Python 3.11, whose flags no longer list their zero: only this one function is replaced.
  printf '%s\n' '#!/usr/bin/python3' 'import torch.distributed.elastic.multiprocessing.api as api' 'if api.Std.from_str("0") is None:' \
    '    api.Std.from_str = classmethod(lambda cls, text: cls(int(text)))' 'from torch.distributed.run import main' \
    'print("torchrun starts", flush=True)' 'main()' >"$bin/torchrun"
  chmod +x "$bin"/*
  echo 'export PATH=$HOME/bin:$PATH' >"$DTOOL_LAB_FOLDER/host$host/root/.bashrc"
done

# The lines are pasted into a shell, which finds these in its PATH. ClusterShell has the same group.
ln -s "$DTOOL" "$HOME/bin/dtool"
for name in Clush Nodeset; do
  printf '#!/bin/sh\nexec /usr/bin/python3 -m ClusterShell.CLI.%s "$@"\n' "$name" >"$HOME/bin/${name,}"
done
printf '#!/bin/sh\ncd %q && exec %q exec h1 sh -c '\''cd ~/here && exec /usr/bin/mpirun "$@"'\'' mpirun "$@"\n' "$source_folder" "$source_folder/tests/lab" >"$HOME/bin/mpirun"
chmod +x "$HOME"/bin/*
export CLUSTERSHELL_CFGDIR=$work/clustershell
mkdir "$CLUSTERSHELL_CFGDIR"
printf '%s\n' '[Main]' 'default: local' '[local]' 'map: [ $GROUP = lab ] && echo h[1-2]' 'all: echo h[1-2]' 'list: echo lab' >"$CLUSTERSHELL_CFGDIR/groups.conf"

paste_line() { expect_exit "$1" timeout 60 bash -o pipefail -c "$2"; }
# What was printed, in one order, without rules between hosts and without the machine and rank before a line.
plain() { sed -E '/^-*$/d; s/^machine[0-9]+( r[0-9]+)?: //' "$1" | if [[ $2 == nodeset* ]]; then tr ' ' '\n'; else cat; fi | sort; }

lines=0 compared=0
while IFS=$'\t' read -r wanted line theirs; do
  paste_line "$wanted" "$line"
  ((lines += 1))
  echo "$line" >>"$work/lines"
  cp "$out" "$work/out.$lines"
  cp "$err" "$work/err.$lines"
  case $theirs in
    *…* | *--outdir* | *--copy* | *--diff* | 'mpirun -np 2 '*) ;; # it would find dtool's files, says it in another form, or runs here
    *clush* | nodeset* | mpirun*)
      paste_line 0 "$theirs"
      expect_equal "$(plain "$work/out.$lines" "$theirs")" "$(plain "$out" "$theirs")"
      ((compared += 1))
      ;;
  esac
done < <(table_lines "$source_folder/docs/coming_from.md" '^## (pdsh|clush|mpirun|torchrun|parallel-ssh)')
((lines >= 44 && compared >= 11)) || fail "only $lines lines were found, and $compared were compared"

# $1: a line of the page. $2: how many lines of its output match $3.
printed() {
  local number
  number=$(grep -nxF -m 1 -e "$1" "$work/lines" | cut -d : -f 1) || fail "the page has no line $1"
  expect_equal "$2 of $1" "$(cat "$work/out.$number" "$work/err.$number" | grep -cE -e "$3") of $1"
}
printed "dtool command -w 'h[1-3]' -x h3 -- uptime" 2 '^h[12]: '
printed "dtool command -w 'ann@h[1-2]' -- id -un" 2 '^ann@h[12]: ann$'
printed 'dtool command --diff -w @lab -- hostname' 1 '^\+lab-.*-2$'
printed "dtool run --hostfile hosts -f -- sh -c 'cd /tmp; pwd'" 4 '^machine[01] r[0-3]: /tmp$'
printed 'dtool logs last' 4 '^machine[01] r[0-3]: /tmp$'
printed 'dtool kill last --yes' 1 ': [1-9][0-9]* processes ended on h\[1-2\]; none is left$'
printed 'dtool run -w h1,h2 -f --torchrun -- train.py' 2 '^machine[01]: torchrun starts$'
printed 'dtool run -w h1,h2 -f --torchrun -- train.py' 4 '^machine[01]: [0-3] 4 1 '
printed 'dtool run --gpus 0,1 -w h1,h2 -f -- python3 train.py' 4 '^machine[01] r[0-3]: [0-3] 4 '
printed 'dtool run --export OMP_NUM_THREADS=4 -w h1,h2 -f -- python3 train.py' 4 '^machine[01] r[0-3]: [0-3] 4 4 '
printed 'dtool logs last --rank 1' 1 '^machine0 r1: 1 4 4 '
printed 'dtool run --env_file .deepspeed_env --hostfile hosts -f -- python3 train.py' 4 ' 0\.3$'
for host in 1 2; do
  expect_file "back/h$host/hostname"
  expect_equal "$(on "$host" hostname)" "$(cat "out/h$host.out")"
  expect_file "out/h$host.err"
  expect_equal /tmp "$(cat "out/machine$((host - 1))/machine$((host - 1)).ranks/r$((host * 2 - 1)).log")"
  on "$host" cmp /tmp/train.py here/train.py
done

# What the text says.
grep -qF '`dtool ssh h1` opens a shell' "$source_folder/docs/coming_from.md" || fail 'the page says nothing about a shell'
printf 'hostname; exit\n' >typed
expect_exit 0 timeout 60 bash -c 'script -qec "dtool ssh h1" /dev/null <typed'
expect_output "$(on 1 hostname).?$" # not the prompt

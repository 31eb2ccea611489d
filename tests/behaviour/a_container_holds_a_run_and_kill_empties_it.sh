#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With `--container` a run's processes see the image's files, the run's own folders at the places that they have on the
# host, and every variable of the run; and kill ends what they left behind, be it in the background or in a session of its own.
# shellcheck disable=SC2088  # it is for the hosts to expand
source "$(dirname "$0")/harness.sh"
source "$here/container_image.sh"
needs_isolation
needs_program ch-run
needs_program busybox
needs_program script
lab 2
hosts=$DTOOL_LAB_HOSTS
for i in 1 2; do
  make_image "$DTOOL_LAB_FOLDER/host$i/root/image"
  mkdir -p "$DTOOL_LAB_FOLDER/host$i/root/data set"
  echo "data of host $i" >"$DTOOL_LAB_FOLDER/host$i/root/data set/file"
done

cat >tell.sh <<'S'
echo "in $(pwd): $(cat /etc/whose), rank $RANK of $WORLD_SIZE on machine $DTOOL_MACHINE_ID, $LOCAL_RANK of $LOCAL_WORLD_SIZE"
echo "run $DTOOL_RUN_ID seed $DTOOL_SEED says '$WORDS' to $MASTER_ADDR: $*"
cat /data/file "$HOME/data set/file"
echo "rank $RANK was here" > "$DTOOL_OUTPUT_DIR/rank$RANK"
ls /usr
S
expect_exit 0 dtool run --json --follow --runs_on "$hosts" --nproc_per_node 2 --seed 7 --container '~/image' --bind '~/data set:/data' --bind '~/data set' \
  --export WORDS="it's \$HOME, \"here\"" -- /bin/sh tell.sh 'a "b" $c' "it's"
id=$(json "d['run_id']")
expect_equal "{'bind': ['~/data set:/data', '~/data set:~/data set'], 'container': '~/image', 'container_engine': 'charliecloud'}" "$(json "d['environment']")"
for rank in 0 1 2 3; do
  expect_error "machine$((rank / 2)) r$rank: in /root/.dtool/runs/$id/tree: the image, rank $rank of 4 on machine $((rank / 2)), $((rank % 2)) of 2$"
  expect_equal "rank $rank was here" "$(cat "$DTOOL_LAB_FOLDER/host$((rank / 2 + 1))/root/here/experiment_output/$id/rank$rank")"
done
expect_equal 4 "$(grep -cF "run $id seed 7 says 'it's \$HOME, \"here\"' to 198.18" "$err")"
expect_equal 4 "$(grep -cF ": a \"b\" \$c it's" "$err")"
expect_equal 4 "$(grep -c 'machine1 r[23]: data of host 2$' "$err")"

# How the program ends is how the run ends.
expect_exit 1 dtool run --json --follow --container '~/image' --runs_on "$hosts" -- /bin/sh -c 'echo going wrong; exit 7'
expect_equal True "$(json "'exit code 7: going wrong' in d['cause']")"
expect_exit 1 dtool run --json --follow --container '~/image' --runs_on "$hosts" -- no_such_program
expect_equal True "$(json "'no_such_program' in d['cause']")"

# With torchrun inside, the cause is told in the failing rank's own words: each rank has a log of its own there, too.
for i in 1 2; do
  cat >"$DTOOL_LAB_FOLDER/host$i/root/image/bin/torchrun" <<'S'
#!/bin/sh
machine=$4
shift 12
for i in 0 1; do
  RANK=$((2 * machine + i)) "${PYTHON_EXEC:-sh}" "$@" &
  [ "$i" = 1 ] || first=$!
done
wait "$first" || { code=$?; wait; echo "failed (exitcode: $code) local_rank: 0 (pid: $first) of binary: sh" >&2; exit 1; }
wait
S
  chmod +x "$DTOOL_LAB_FOLDER/host$i/root/image/bin/torchrun"
done
cat >train.sh <<'S'
case $RANK in
  2) echo 'ValueError: rank 2 has had enough'; exit 3 ;;
  3) sleep 1; echo 'rank 3 has nothing to say of it' ;;
  *) sleep 100 ;;
esac
S
expect_exit 1 timeout 60 "$DTOOL" run --json --follow --runs_on "$hosts" --nproc_per_node 2 --container '~/image' --torchrun -- train.sh
expect_equal 'ended with exit code 3: ValueError: rank 2 has had enough' "$(json "d['cause'].split(') ')[1]")"
expect_equal 'rank 3 has nothing to say of it' "$(cat "$DTOOL_LAB_FOLDER/host2/root/here/experiment_output/$(json "d['run_id']")/machine1.ranks/r3.log")"

# The image's own variables hold inside, and what the user gives wins over them.
for i in 1 2; do
  mkdir "$DTOOL_LAB_FOLDER/host$i/root/image/ch"
  printf 'PATH=/opt/tools:/bin\nCOLOUR=red\nSHAPE=round\n' >"$DTOOL_LAB_FOLDER/host$i/root/image/ch/environment"
done
expect_exit 0 dtool run --follow --container '~/image' --runs_on "$hosts" --export SHAPE='$square' -- sh -c 'echo "$PATH $COLOUR $SHAPE"'
expect_output 'machine1: /opt/tools:/bin red \$square$'

# An environment of the user's own is activated inside; one that fails there is known before.
for i in 1 2; do
  mkdir -p "$DTOOL_LAB_FOLDER/host$i/root/venv/bin"
  add_program "$DTOOL_LAB_FOLDER/host$i/root/image" /bin/bash
  echo 'export IN="$(cat /etc/whose)"; cd /etc; exec >/dev/null; program=(false) activate=/x' >"$DTOOL_LAB_FOLDER/host$i/root/venv/bin/activate"
done
expect_exit 0 dtool run --follow --container '~/image' --runs_on "$hosts" --env_activate_path '~/venv' -- sh -c 'echo "activated in $IN, $PWD"'
expect_output '^machine1: activated in the image, /root/\.dtool/runs/'
echo 'cat /etc/nothing' >"$DTOOL_LAB_FOLDER/host2/root/venv/bin/activate"
starts_nothing() {
  expect_exit 2 dtool run --runs_on "$hosts" "$@" -- sleep 1000
  expect_error '^nothing was started$'
}
starts_nothing --container '~/image' --env_activate_path '~/venv'
expect_error "1 of 2 hosts failed"
expect_error '--env_activate_path: in the container: cat: .*/etc/nothing.*; dtool: /root/venv failed: .*No such file or directory$'

# What is missing is named.
rm -r "$DTOOL_LAB_FOLDER/host2/root/data set"
starts_nothing --container '~/image' --bind '~/data set:/data'
expect_error '--bind: there is no /root/data set$'
starts_nothing --container '~/images'
expect_error '--container: there is no image /root/images$'
starts_nothing --container '~/venv'
expect_error '--container: charliecloud cannot run /root/venv: error: '
fault hide h2 ch-run
starts_nothing --container '~/image'
expect_error "--container: ch-run is not there$"
expect_error "apt-get install -y charliecloud-runtime' --runs_on"
starts_nothing --container '~/image/torch.sif'
expect_error '2 of 2 hosts failed'
expect_error '--container: apptainer is not there$'
fault unhide h2 ch-run

# What hides in a container is found as well as what hides on a host.
cat >hide.sh <<'S'
(setsid sleep 1001 > /dev/null 2>&1 &)
(setsid sh -c 'sleep 1002 & sleep 1003; true' > /dev/null 2>&1 < /dev/null &)
touch "$DTOOL_OUTPUT_DIR/hidden"
exec sleep 1004
S
expect_exit 0 dtool run --json --runs_on "$hosts" --container '~/image' -- /bin/sh hide.sh
id=$(json "d['run_id']")
for i in 1 2; do eventually 20 expect_file "$DTOOL_LAB_FOLDER/host$i/root/here/experiment_output/$id/hidden"; done
inside() { # processes of the run whose root is not this machine's
  local pid count=0
  for pid in $(processes_with "$id"); do [[ ! -e /proc/$pid/root/etc/whose ]] || ((count += 1)); done
  echo "$count"
}
eventually 20 eval '[[ $(inside) == 10 ]]'
# Commands and shells beside the run are inside, too, with their input or a terminal.
# shellcheck disable=SC2016
expect_exit 0 sh -c 'echo what they read | "$0" exec "$1" --stdin -- "cat /etc/whose -; [ -t 0 ] || echo no terminal, in \$PWD"' "$DTOOL" "$id"
for said in 'the image' 'what they read' "no terminal, in /root/.dtool/runs/$id/tree"; do
  expect_equal 2 "$(grep -c ": $said\$" "$out")"
done
expect_exit 0 dtool exec "$id" -m 1 -- cat /etc/whose
expect_output ': the image$'
expect_exit 0 timeout 60 script -qec "'$DTOOL' ssh '$id' -m 1 -- 'cat /etc/whose; test -t 0 && echo at a terminal'" /dev/null
expect_output 'the image'
expect_output 'at a terminal'
expect_exit 0 dtool kill "$id" --yes --delete --json
expect_equal "[True]" "$(json "[run['none_left'] for run in d['runs']]")"
expect_no_process_with "$id"
expect_equal 0 "$(inside)"

# The bundled trainer trains in an image that has what it is linked with: here this machine's own /usr.
[[ -x ${DTOOL_TRAINER:-} ]] || exit 0
for i in 1 2; do
  image=$DTOOL_LAB_FOLDER/host$i/root/torch
  make_image "$image"
  rmdir "$image"/lib "$image"/lib64
  ln -s usr/lib usr/lib64 "$image"
done
expect_exit 0 timeout 100 "$DTOOL" run digits --follow --runs_on "$hosts" --container '~/torch' --bind /usr --bind /etc/alternatives \
  --config_kwargs '{"data":{"train_samples":1200,"test_samples":200},"train":{"epochs":1}}'
expect_output '^machine0: .*: 2 ranks on 2 machines'
expect_output '^machine0: test accuracy 0\.'
expect_exit 2 dtool run digits --runs_on "$hosts" --container '~/torch'
expect_error 'dtool-trainer does not run in the container: .*No such file'

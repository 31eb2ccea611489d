#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a hostile host has in its output folder, and what a hostile rsync of its sends, puts no file outside DEST.
source "$(dirname "$0")/harness.sh"
needs_isolation
lab 1

mkdir code outside
cd code
cat >train.sh <<'END'
cd "$DTOOL_OUTPUT_DIR"
echo result >result
ln -s "$OUTSIDE" absolute
ln -s ../../../outside relative
ln -s ../../../outside/new file
mkdir deep
ln -s deep/../../../outside through
ln -s ../result deep/good
mkfifo fifo
cp /bin/true program
chmod 4755 program
END
expect_exit 0 dtool run --follow --json --runs_on "$DTOOL_LAB_HOSTS" --export OUTSIDE="$work/here/outside" -- bash train.sh
id=$(json 'd["run_id"]')
cd ..
host=$DTOOL_LAB_FOLDER/host1/root/code/experiment_output/$id

expect_exit 0 dtool fetch "$id" here
expect_error '^machine0 .*: left out, since only files, folders and links within the source come: .*fifo'
expect_equal result "$(cat here/machine0/deep/good)"
for name in absolute relative file through fifo; do
  [[ ! -L here/machine0/$name && ! -e here/machine0/$name ]] || fail "$name came"
done
[[ ! -u here/machine0/program ]] || fail 'a set-uid bit came'
expect_equal '' "$(find here -type l ! -name good)"

# Links that became folders with files in them, and the other way round.
rm "$host/absolute" "$host/relative"
mkdir "$host/absolute" "$host/relative"
echo attack >"$host/absolute/new"
echo attack >"$host/relative/new"
expect_exit 0 dtool fetch "$id" here
expect_equal attack "$(cat here/machine0/relative/new)"
rm -r "$host/relative" && ln -s ../../outside "$host/relative"
expect_exit 0 dtool fetch "$id" here
expect_equal '' "$(ls outside)"

# A link in the output folder that points beside DEST's folder, then a file through it.
ln -s deep "$host/inner"
expect_exit 0 dtool fetch "$id" here
rm "$host/inner" && mkdir "$host/inner" && echo attack >"$host/inner/new"
expect_exit 1 dtool fetch "$id" here
expect_error 'something of another kind .* is in the place of inner$'
expect_no_file here/machine0/deep/new

# An rsync there that sends other names than those it was asked for.
mkdir -p "$work/attack"
cp -r "$DTOOL_LAB_FOLDER/host1/root/code" "$work/attack/"
real=$(command -v rsync)
cat >"$DTOOL_LAB_FOLDER/host1/root/rsync" <<END
#!/bin/bash
mkdir -p /root/attack/sub && echo attack >/root/attack/planted && cd /root/attack/sub
words=("\$@")
unset 'words[-1]'
exec $real "\${words[@]}" --relative ../planted
END
chmod +x "$DTOOL_LAB_FOLDER/host1/root/rsync"
echo 'PATH=/root:$PATH' >"$DTOOL_LAB_FOLDER/host1/root/.bashrc"
run dtool fetch "$id" there
expect_file "$DTOOL_LAB_FOLDER/host1/root/attack/planted"
[[ ! -e there/planted && ! -e planted ]] || fail 'a file was planted beside the folder'
expect_equal '' "$(find . -name planted ! -path './there/machine0/*')"
expect_equal '' "$(ls outside)"

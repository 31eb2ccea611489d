#!/bin/bash
# SPDX-License-Identifier: MIT
# MNIST's own files, from a mirror that has compressed them as it liked, into a folder that lacks them; a folder with
# another set's files in it is not filled up with MNIST's.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/harness.sh"
if [ -z "${DTOOL_MNIST_DIR:-}" ]; then
  echo "SKIPPED: DTOOL_MNIST_DIR does not name a folder with MNIST's four files"
  exit 77
fi
mkdir served
for name in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
  source=$DTOOL_MNIST_DIR/$name-ubyte
  if [ -e "$source" ]; then gzip -1 < "$source"; else gzip -dc "$source.gz" | gzip -1; fi > served/$name-ubyte.gz
done
mnist() {
  printf '%s\n' 'workload = "classifier"' 'data.source = "mnist"' "data.path = \"$1\"" \
    "data.mirrors = [\"file://$work/nowhere\", \"file://$work/served/\"]" 'train.epochs = 1' > e.toml
}
mnist data/mnist
"$trainer" e.toml --output_dir out > run.log 2>&1 || fail "exit code $?"
last=$(tail -n 1 run.log)
awk -v accuracy="${last##* }" 'BEGIN { exit !(accuracy >= 0.9) }' || fail "$last"
cmp served/train-images-idx3-ubyte.gz data/mnist/train-images-idx3-ubyte.gz || fail "not what was served"

# Unpacked files serve too, and only what is missing is fetched.
gzip -d data/mnist/train-images-idx3-ubyte.gz
rm data/mnist/t10k-labels-idx1-ubyte.gz
"$trainer" e.toml --output_dir out > again.log 2>&1 || fail "again: exit code $?"
[ -e data/mnist/t10k-labels-idx1-ubyte.gz ] || fail "the missing file was not fetched"
[ ! -e data/mnist/train-images-idx3-ubyte.gz ] || fail "a file that was there unpacked was fetched"

# A mirror that goes on sending is not listened to until the disk is full.
mkdir long
truncate -s 200M long/t10k-labels-idx1-ubyte.gz
mnist data/mnist
sed -i "s,/nowhere,/long," e.toml
rm data/mnist/t10k-labels-idx1-ubyte.gz
"$trainer" e.toml --output_dir out > long.log 2>&1 || fail "a long file: exit code $?"
grep -q 'long/t10k-labels-idx1-ubyte.gz: sends more than [0-9]* bytes$' long.log || fail "a long file: $(head -n 3 long.log)"
cmp served/t10k-labels-idx1-ubyte.gz data/mnist/t10k-labels-idx1-ubyte.gz || fail "not what the next mirror served"

mkdir mine
echo mine > mine/train-labels-idx1-ubyte
mnist mine
code=0
"$trainer" e.toml --output_dir out > mine.log 2>&1 || code=$?
[ $code = 2 ] || fail "another set: exit code $code"
grep -q '^dtool-trainer: .*: mine/train-labels-idx1-ubyte is another file than was meant: .*so what is missing beside it is not downloaded' \
  mine.log || fail "another set: not said"

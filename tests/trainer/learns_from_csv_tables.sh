#!/bin/bash
# SPDX-License-Identifier: MIT
# Tables of numbers: a regression finds the line through them, a classifier the class of a point; plain or gzip, copied to
# the machine's own disk first; and a mistake in a table, a column or a path ends the run before its first step.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/harness.sh"

# y = 2a - 3b + 1 with columns of very different size; the class is whether a is above b. awk's numbers are its own
# generator's, so the same everywhere.
awk 'BEGIN { srand(1); print "a;\"b b\";y;class"
  for (i = 0; i < 2000; i++) { a = rand(); b = rand(); printf "%.6f;%.3f;%.6f;%d\r\n", a, 1e6 + 1000 * b, 2 * a - 3 * b + 1, (a > b) } }' > points.csv
gzip -k points.csv
regression() {
  printf '%s\n' 'workload = "regression"' 'data.source = "csv"' 'data.separator = ";"' 'data.targets = ["y"]' 'data.inputs = ["a", "b b"]' \
    'data.standardise = true' 'optimizer.learning_rate = 0.05' 'train.epochs = 20' 'checkpoint.every_epochs = 0' "$@" > e.toml
}

regression 'data.train_file = "points.csv"'
"$trainer" e.toml --nproc_per_node 2 --output_dir plain > plain.log 2>&1 || fail "regression: exit code $?"
loss=$(metric plain epoch loss | tail -n 1)
awk -v loss="$loss" 'BEGIN { exit !(loss < 0.001) }' || fail "the line is not found: loss $loss"

# shellcheck disable=SC2016  # the trainer is to replace it
regression 'data.train_file = "points.csv.gz"' 'data.path = "${HERE}"' 'data.copy_to = "$HERE/own disk"'
HERE=$work "$trainer" e.toml --nproc_per_node 2 --output_dir packed > packed.log 2>&1 || fail "gzip: exit code $?"
[ "$(metric packed epoch loss)" = "$(metric plain epoch loss)" ] || fail "a packed table gives other losses"
cmp points.csv.gz 'own disk/points.csv.gz' || fail "the copy is not one"
[ "$(grep -c '^points.csv.gz: .* from ' packed.log)" = 1 ] || fail "not one copy was made"

printf '%s\n' 'workload = "classifier"' 'data.source = "csv"' 'data.separator = ";"' 'data.train_file = "points.csv"' 'data.inputs = ["a", "b b"]' \
  'data.standardise = true' 'data.test_share = 0.2' 'optimizer.learning_rate = 0.01' 'train.epochs = 10' > e.toml
"$trainer" e.toml --output_dir class > class.log 2>&1 || fail "classifier: exit code $?"
last=$(tail -n 1 class.log)
awk -v accuracy="${last##* }" 'BEGIN { exit !(accuracy >= 0.97) }' || fail "the classes are not learnt: $last"

# refused PATTERN TOML...
refused() {
  local pattern=$1 code=0
  shift
  regression "$@"
  "$trainer" e.toml --nproc_per_node 2 --output_dir refused > out.log 2> err.log || code=$?
  [ $code = 2 ] || fail "$*: exit code $code"
  [ "$(grep -c '^dtool-trainer: ' err.log)" = 1 ] || fail "$*: not one message"
  grep -q "^dtool-trainer: .*$pattern" err.log || fail "$*: the message lacks '$pattern'"
  ! grep -q samples/s out.log || fail "$*: it trained"
}
sed '17s/;/;NaN/' points.csv > nan.csv
refused "nan.csv:17: column 'b b': 'NaN.*' is not a number" 'data.train_file = "nan.csv"'
sed '17s/;[^;]*;/;NaN;/' points.csv > nan.csv
refused "nan.csv:17: column 'b b': 'NaN' is no finite number" 'data.train_file = "nan.csv"'
sed '5s/;[^;]*$//' points.csv > ragged.csv
refused 'ragged.csv:5: has 3 cells, the first row has 4' 'data.train_file = "ragged.csv"'
head -c 20000 points.csv.gz > cut.csv.gz
refused 'cut.csv.gz: truncated gzip data' 'data.train_file = "cut.csv.gz"'
cut -d';' -f1-3 points.csv > other.csv
sed -i 's/b b/b/' other.csv
refused "data.test_file: other.csv has no column 'b b'" 'data.train_file = "points.csv"' 'data.test_file = "other.csv"'
refused "no nowhere.csv in '.'" 'data.train_file = "nowhere.csv"'
refused "data.path '.NO_SUCH/x': the environment variable NO_SUCH is not set" 'data.train_file = "points.csv"' 'data.path = "$NO_SUCH/x"'
refused 'data.train_file is missing' 'data.test_share = 0.5'
refused 'data.test_share does not go together with data.test_file' 'data.train_file = "a"' 'data.test_file = "b"' 'data.test_share = 0.5'
refused 'data.mirrors needs data.sha256' 'data.train_file = "a"' 'data.mirrors = ["https://example.org/"]'
refused "'example.org' is no address of a folder" 'data.train_file = "a"' 'data.mirrors = ["example.org"]'
refused 'data.sha256 has 2 checksums for 1 file' 'data.train_file = "a"' 'data.sha256 = ["b", "c"]'
refused "'b' is not 64 hexadecimal digits" 'data.train_file = "a"' 'data.sha256 = ["b"]'
refused 'data.train_images is only for data.source = "idx"' 'data.train_file = "a"' 'data.train_images = "b"'

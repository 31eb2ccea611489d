#!/bin/bash
# Every mistake in flags, experiment or data: exit code 2, one message that names the thing, a hint where the
# mend is known, and nothing left behind.
. "$(dirname "$0")/harness.sh"

# refused PATTERN HINT ARGUMENT...: HINT may be empty.
refused() {
  local pattern=$1 hint=$2 code=0
  shift 2
  "$trainer" --output_dir out "$@" > out.log 2> err.log || code=$?
  [ $code = 2 ] || fail "$*: exit code $code"
  [ "$(grep -c '^dtool-trainer: ' err.log)" = 1 ] || fail "$*: not one message"
  grep -q "^dtool-trainer: .*$pattern" err.log || fail "$*: the message lacks '$pattern'"
  if [ -n "$hint" ]; then grep -q "^hint: .*$hint" err.log || fail "$*: the hint lacks '$hint'"; fi
  ! grep -q 'samples/s' out.log || fail "$*: it trained"
}

# refused_line LINE PATTERN HINT: an experiment with one more line, the third.
refused_line() {
  digits_experiment e.toml "$1"
  refused "$2" "$3" e.toml
  [ ! -e out ] || fail "$1: an output folder was made"
}

digits_experiment good.toml
refused 'no experiment given' 'EXPERIMENT.toml'
refused 'no experiment file at nowhere.toml' '' nowhere.toml
refused "one experiment at a time: 'two'" '' good.toml two
refused 'unknown flag --seeed' '--help' good.toml --seeed 3
refused '--seed needs a value' '' good.toml --seed
refused "--seed must be a whole number from 0 .*'-1'" '' good.toml --seed=-1
refused "--nproc_per_node must be .*'two'" '' good.toml --nproc_per_node two
refused 'machine_id 3 does not exist among 2 machines' 'from 0' good.toml --machine_id 3 --distributed_nodes 2
refused 'needs --distributed_ip_and_port' '29500' good.toml --distributed_nodes 2
refused "'10.0.0.1' is not IP:PORT" '10.0.0.1:29500' good.toml --distributed_ip_and_port 10.0.0.1
refused "'fd00::1:29500' is not IP:PORT" 'fd00::1' good.toml --distributed_ip_and_port fd00::1:29500

refused_line 'train.epoch = 3' 'e.toml:3: unknown key train.epoch' 'did you mean train.epochs?'
refused_line 'trian.epochs = 3' 'e.toml:3: unknown table trian' ''
refused_line 'train.batch_size = 0' 'e.toml:3: train.batch_size must be from 1 to' ''
refused_line 'train.epochs = 2.5' 'e.toml:3: train.epochs must be a whole number, not a number with' ''
refused_line 'train.epochs = "3"' 'e.toml:3: train.epochs must be a whole number, not text' ''
refused_line 'train = 3' 'e.toml:3: train must be a table' ''
refused_line 'optimizer.learning_rate = -0.1' 'e.toml:3: optimizer.learning_rate must be from' ''
refused_line 'optimizer.learning_rate = nan' 'e.toml:3: optimizer.learning_rate must be from' ''
refused_line 'optimizer.scale_learning_rate = "liner"' 'is one of none, linear, sqrt' 'did you mean linear?'
refused_line 'model.hidden = [50, 0]' 'e.toml:3: model.hidden must be from 1' ''
refused_line 'data.path = "x"' 'e.toml:3: data.path is only for' ''
refused_line 'distributed_nodes = 3' 'distributed_nodes is 3, but this run has 1 machine' 'drop the key'
refused_line 'train.epochs = ' 'e.toml:3: ' ''
echo 'data.source = "digits"' > e.toml
refused 'e.toml: workload is missing' 'classifier' e.toml
digits_experiment e.toml data.train_samples=1
refused '1 training samples are too few for 2 ranks' '' e.toml --nproc_per_node 2

refused 'no checkpoint at nowhere.pt' '' good.toml --checkpoint nowhere.pt
rm -rf out
refused '--checkpoint latest: none in out/checkpoints' '' good.toml --checkpoint latest --nproc_per_node 2
head -c 1000 /dev/urandom > noise.pt
refused 'noise.pt is no checkpoint' '' good.toml --checkpoint noise.pt

# Data: a folder of tiny but right files, then each of them spoilt in turn.
unset DTOOL_MNIST_DIR
images() { printf '%b' '\0\0\x08\x03\0\0\0\x0'"$1"'\0\0\0\x02\0\0\0\x02'; head -c $(($1 * 4)) /dev/zero; }
labels() { printf '%b' '\0\0\x08\x01\0\0\0\x0'"$1"; head -c "$1" /dev/zero; }
right_data() {
  rm -rf data && mkdir data
  images 3 > data/train-images-idx3-ubyte
  labels 3 > data/train-labels-idx1-ubyte
  images 2 | gzip > data/t10k-images-idx3-ubyte.gz
  labels 2 > data/t10k-labels-idx1-ubyte
}
printf '%s\n' 'workload = "classifier"' 'data.source = "mnist"' 'data.path = "data"' \
  'data.download = false' > mnist.toml
right_data
"$trainer" mnist.toml --output_dir right > right.log 2>&1 || fail "right data: exit code $?"
rm data/t10k-labels-idx1-ubyte
refused "no t10k-labels-idx1-ubyte.gz in 'data'" 'put train-images-idx3-ubyte, .*DTOOL_MNIST_DIR' mnist.toml \
  --nproc_per_node 2
right_data; labels 3 > data/train-images-idx3-ubyte
refused 'train-images-idx3-ubyte: holds 1 dimensions, images have 3' '' mnist.toml
right_data; echo 'not data at all' > data/train-labels-idx1-ubyte
refused 'train-labels-idx1-ubyte: not an IDX file: magic number 0x6e6f7420' '' mnist.toml
right_data; labels 2 > data/train-labels-idx1-ubyte
refused 'holds 3 images, but .*train-labels-idx1-ubyte holds 2 labels' '' mnist.toml
right_data; truncate -s -1 data/train-images-idx3-ubyte
refused 'train-images-idx3-ubyte: truncated: its content should take 12 bytes, 11 are there' '' mnist.toml
right_data; echo >> data/train-images-idx3-ubyte
refused 'train-images-idx3-ubyte: longer than' '' mnist.toml
right_data; truncate -s -12 data/t10k-images-idx3-ubyte.gz
refused 't10k-images-idx3-ubyte.gz: \(truncated\|damaged\)' '' mnist.toml

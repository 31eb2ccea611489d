#!/bin/bash
# SPDX-License-Identifier: MIT
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
refused 'unknown flag --out' '--help' good.toml --out elsewhere
refused 'unknown flag --see' '--help' good.toml --see=3
refused 'unknown flag --machine-i' '--help' good.toml --machine-i 0
refused '--seed needs a value' '' good.toml --seed
refused "--seed must be a whole number from 0 .*'-1'" '' good.toml --seed=-1
refused "--nproc_per_node must be .*'two'" '' good.toml --nproc_per_node two
refused 'machine_id 3 does not exist among 2 machines' 'from 0' good.toml --machine_id 3 --distributed_nodes 2
refused 'needs --distributed_ip_and_port' '29500' good.toml --distributed_nodes 2
refused "'10.0.0.1' is not IP:PORT" '10.0.0.1:29500' good.toml --distributed_ip_and_port 10.0.0.1
refused "'fd00::1:29500' is not IP:PORT" 'fd00::1' good.toml --distributed_ip_and_port fd00::1:29500

refused_line 'train.epoch = 3' 'e.toml:3:[0-9]*: unknown key .train.epoch.' 'did you mean .epochs.?'
refused_line 'trian.epochs = 3' 'e.toml:3:[0-9]*: unknown key .trian.' ''
refused_line 'train.batch_size = 0' 'e.toml:3:[0-9]*: train.batch_size must be from 1 to' ''
refused_line 'train.epochs = 2.5' 'e.toml:3:[0-9]*: train.epochs must be a whole number, not a number with' ''
refused_line 'train.epochs = "3"' 'e.toml:3:[0-9]*: train.epochs must be a whole number, not a string' ''
refused_line 'train.precision = "float16"' 'e.toml:3:[0-9]*: train.precision is one of float32, bfloat16' ''
refused_line $'train.cuda_graph = "on"\ndistributed.backend = "gloo"' 'train.cuda_graph is "on", but this run is on CPUs' '"auto"'
refused_line 'train = 3' 'e.toml:3:[0-9]*: train must be a table' ''
refused_line 'optimizer.learning_rate = -0.1' 'e.toml:3:[0-9]*: optimizer.learning_rate must be from' ''
refused_line 'optimizer.learning_rate = nan' 'e.toml:3:[0-9]*: optimizer.learning_rate must be from' ''
refused_line 'optimizer.scale_learning_rate = "liner"' 'is one of none, linear, sqrt' 'did you mean .linear.?'
refused_line 'model.hidden = [50, 0]' 'e.toml:3:[0-9]*: model.hidden must be from 1' ''
refused_line 'data.path = "x"' 'e.toml:3:[0-9]*: data.path is only for' ''
refused_line 'distributed_nodes = 3' 'distributed_nodes is 3, but this run has 1 machine' 'drop the key'
refused_line 'train.epochs = ' 'e.toml:3:[0-9]*: ' ''
echo 'data.source = "digits"' > e.toml
refused 'e.toml: workload is missing' 'classifier' e.toml
digits_experiment e.toml data.train_samples=1
refused '1 training samples are too few for 2 ranks' '' e.toml --nproc_per_node 2

refused 'no checkpoint at nowhere.safetensors' '' good.toml --checkpoint nowhere.safetensors
rm -rf out
refused '--checkpoint latest: none in out/checkpoints' '' good.toml --checkpoint latest --nproc_per_node 2
rm -rf out
refused_line 'model.layers = ["conv 8"]' "e.toml:3:[0-9]*: layer 'conv 8': the kernel must be" ''
refused_line 'model.layers = ["conv 8 29"]' "layer 'conv 8 29' is too large for images of 28 x 28" ''
refused_line 'model.layers = ["linear 5", "conv 8 3"]' "layer 'conv 8 3' needs images, but gets 5 values" ''
refused_line 'train.batch_size_per = "machine"
train.batch_size = 0' 'e.toml:4:[0-9]*: train.batch_size must be from' ''
refused_line '[[stage]]' 'e.toml:3:[0-9]*: stage\[0\] needs a length' ''
refused_line 'schedule.kind = "cosin"' 'schedule.kind is one of' 'did you mean .cosine.?'
digits_experiment e.toml 'train.batch_size_per = "machine"' 'train.batch_size = 63'
refused 'a batch of 63 samples a machine cannot be dealt out evenly to 2 ranks' '62 or 64' e.toml --nproc_per_node 2

digits_experiment small.toml train.epochs=1 data.train_samples=300 data.test_samples=50
"$trainer" small.toml --output_dir small > small.log 2>&1 || fail "small: exit code $?"
checkpoint=small/checkpoints/step_000000005.safetensors
digits_experiment e.toml data.train_samples=300 data.test_samples=50 model.hidden='[60]'
refused "$checkpoint does not fit: fc1.weight has shape \[50, 784\] in the checkpoint, \[60, 784\]" '' e.toml --checkpoint $checkpoint
digits_experiment e.toml data.train_samples=300 data.test_samples=50 model.hidden='[50, 50]'
refused "does not fit: it holds a model of 4 tensors, the experiment's has 6" '' e.toml --checkpoint $checkpoint --nproc_per_node 2
digits_experiment e.toml data.train_samples=300 data.test_samples=50 'optimizer.kind="sgd"'
refused 'does not fit: it holds the state of adam' '' e.toml --checkpoint $checkpoint
digits_experiment e.toml data.train_samples=400 data.test_samples=50
refused "does not fit: its data had 300 training samples, this run's has 400" '' e.toml --checkpoint $checkpoint

torchscript() { printf '%s\n' 'workload = "torchscript"' 'data.source = "digits"' "$@" > e.toml; }
torchscript 'model.loss = "mse"'
refused 'model.file is missing' 'torch.jit.script' e.toml
torchscript 'model.loss = "mse"' 'model.file = "nowhere.pt"'
refused 'model.file: no file at nowhere.pt' 'torch.jit.script' e.toml
torchscript 'model.loss = "mse"' 'model.file = "e.toml"'
refused 'model.file: e.toml is no TorchScript module' 'torch.jit.script' e.toml
torchscript 'model.loss = "cross_entropy"' 'model.file = "x"' 'model.target = "inputs"'
refused 'e.toml:5:[0-9]*: cross_entropy compares with labels' '' e.toml
/usr/bin/python3 -c 'import torch; torch.jit.script(torch.nn.Linear(10, 3)).save("ten.pt")'
torchscript 'model.loss = "cross_entropy"' 'model.file = "ten.pt"' 'model.input_shape = [10]'
refused 'model.input_shape \[10\] holds 10 values, a sample has 784' '' e.toml
torchscript 'model.loss = "cross_entropy"' 'model.file = "ten.pt"' 'model.input_shape = [784]'
refused 'the model does not fit the data: ' '' e.toml --nproc_per_node 2
torchscript 'model.loss = "mse"' 'model.file = "ten.pt"' 'model.input_shape = [784]'
refused 'the model does not fit the data: ' '' e.toml

printf 'x%.0s' {1..1000} > noise.safetensors
refused 'noise.safetensors is no checkpoint: its first bytes' '' good.toml --checkpoint noise.safetensors
# A TorchScript archive is not even looked into; a run that has only such ones does not begin anew.
refused 'ten.pt is a checkpoint of a former format' 'dtool-trainer 0.1.0 wrote it' good.toml --checkpoint ten.pt --nproc_per_node 2
mkdir -p out/checkpoints && cp ten.pt out/checkpoints/step_000000007.pt
for which in auto latest; do
  refused 'out/checkpoints/step_000000007.pt is a checkpoint of a former format' 'dtool-trainer 0.1.0' good.toml --checkpoint $which
done
rm -r out

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

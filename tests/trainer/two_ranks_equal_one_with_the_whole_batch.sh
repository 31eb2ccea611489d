#!/bin/bash
# SPDX-License-Identifier: MIT
# For every workload: the average of two ranks' gradients over half the batch each is the gradient over the whole
# batch, also where a step adds up several batches, and where batch norm looks at all of them.
. "$(dirname "$0")/harness.sh"

# compare NAME TOML...: trains the same on one rank and on two, and on two with two batches a step (but not where batch
# norm looks at each batch).
compare() {
  local name=$1
  shift
  printf '%s\n' "$@" 'train.epochs = 2' 'train.batch_size_per = "run"' 'train.batch_size = 64' > "$name.toml"
  sed 's/= 64/= 32\ntrain.accumulate = 2/' "$name.toml" > "$name-accumulated.toml"
  "$trainer" "$name.toml" --nproc_per_node 1 --output_dir "$name-1" > "$name-1.log" 2>&1 || fail "$name, one rank"
  "$trainer" "$name.toml" --nproc_per_node 2 --output_dir "$name-2" > "$name-2.log" 2>&1 || fail "$name, two ranks"
  "$trainer" "$name-accumulated.toml" --nproc_per_node 2 --output_dir "$name-a" > "$name-a.log" 2>&1 ||
    fail "$name, accumulated"
  local others="2 a"
  if grep -q batch_norm "$name.toml"; then others=2; fi
  for other in $others; do
    for key in step loss test_loss; do
      paste <(metric "$name-1" epoch $key) <(metric "$name-$other" epoch $key) |
        awk '{ d = ($1 - $2) / $1; if (d * d > 1e-8) exit 1; n++ } END { exit n != 2 }' ||
        fail "$name, $other: $key: $(metric "$name-1" epoch $key) and $(metric "$name-$other" epoch $key)"
    done
  done
}

digits=('data.source = "digits"' 'data.train_samples = 1280' 'data.test_samples = 200')
compare classifier 'workload = "classifier"' "${digits[@]}"
# Smooth layers, since a value that is nearly a tie for a ReLU or a maximum may go either way. Not Adam: a bias before a batch norm has no gradient but rounding errors, and Adam makes whole steps of them.
compare convolutions 'optimizer.kind = "sgd"' 'workload = "classifier"' "${digits[@]}" \
  'model.layers = ["conv 4 3", "batch_norm", "gelu", "average_pool 2", "linear 20", "batch_norm", "tanh"]'
compare autoencoder 'workload = "autoencoder"' "${digits[@]}" 'model.hidden = [16]'
compare regression 'workload = "regression"' 'data.source = "random"' 'data.train_samples = 1280' \
  'data.random_targets = "linear"' 'optimizer.kind = "sgd"'

/usr/bin/python3 - << 'EOF'
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 20), torch.nn.Tanh(), torch.nn.Linear(20, 10))
torch.jit.script(model).save("model.pt")
EOF
compare torchscript 'workload = "torchscript"' "${digits[@]}" 'model.file = "model.pt"' 'model.loss = "cross_entropy"'

# Without the exchange batch norm sees half of each batch, and the numbers differ: the comparison can fail.
sed 's/= 64/= 64\nmodel.sync_batch_norm = false/' convolutions.toml > apart.toml
"$trainer" apart.toml --nproc_per_node 2 --output_dir apart > apart.log 2>&1 || fail "batch norm apart"
paste <(metric convolutions-1 epoch loss) <(metric apart epoch loss) |
  awk '{ d = ($1 - $2) / $1; if (d * d > 1e-8) exit 1 }' && fail "batch norm apart makes no difference"
exit 0

#!/bin/bash
# SPDX-License-Identifier: MIT
# A module exported from Python is trained without Python, and Python reads what came out.
. "$(dirname "$0")/harness.sh"
# A file: TorchScript reads the class's source.
cat > export.py << 'EOF'
import torch
torch.manual_seed(1)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3, stride=2), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Dropout(0.1))
        self.head = torch.nn.Linear(4 * 13 * 13, 10)
        self.unused = torch.nn.Linear(3, 3)
    def forward(self, images):
        return self.head(self.features(images).flatten(1))
torch.jit.script(Net()).save("model.pt")
torch.jit.script(torch.nn.Linear(784, 784)).save("identity.pt")
EOF
/usr/bin/python3 export.py
printf '%s\n' 'workload = "torchscript"' 'model.file = "model.pt"' 'model.loss = "cross_entropy"' \
  'data.source = "digits"' 'data.train_samples = 6000' 'data.test_samples = 500' 'train.epochs = 3' > script.toml
"$trainer" script.toml --nproc_per_node 2 --output_dir out > run.log 2>&1 || fail "exit code $?"
grep -q '^note: the loss does not depend on unused.weight, which stays as it is$' run.log || fail "no note"
grep -q '^note: batch norm in the module (features.1.running_mean) is over each rank.s own batch' run.log || fail "batch norm is not told"
awk -v a="$(tail -n 1 run.log | sed -n 's/^test accuracy //p')" 'BEGIN { exit !(a >= 0.9) }' ||
  fail "$(tail -n 1 run.log)"
# The lines that the documentation has for reading a checkpoint.
sed -n '/^import json, struct, torch$/,/^```$/p' "$(dirname "$0")/../../docs/experiment.md" | sed '$d' > reading.py
/usr/bin/python3 - << 'EOF' || fail "python reads something else"
import glob, torch
from reading import read_checkpoint
trained, former = torch.jit.load("out/trained_model.pt"), torch.jit.load("model.pt")
assert not torch.equal(trained.head.weight, former.head.weight)
assert torch.equal(trained.unused.weight, former.unused.weight)
tensors, metadata = read_checkpoint(max(glob.glob("out/checkpoints/step_*.safetensors")))
saved = {name[6:]: tensor for name, tensor in tensors.items() if name.startswith("model.")}
state = trained.state_dict()
assert saved.keys() == state.keys(), (saved.keys(), state.keys())
for name, tensor in state.items():
    assert saved[name].dtype == tensor.dtype and torch.equal(saved[name], tensor), name
parameters = [tensor for name, tensor in trained.named_parameters() if not name.startswith("unused.")]
for i, tensor in enumerate(parameters):
    for moment in "first", "second":
        assert tensors[f"optimizer.{moment}.{i}"].shape == tensor.shape, (moment, i)
assert len(tensors) == len(state) + 2 * len(parameters)
assert metadata["optimizer"] == "adam" and metadata["epochs"] == "3" and metadata["world_size"] == "2", metadata
assert 0.9 <= float(metadata["best_score"]) <= 1, metadata
assert trained(torch.rand(2, 1, 28, 28)).shape == (2, 10)
EOF

printf '%s\n' 'workload = "torchscript"' 'model.file = "identity.pt"' 'model.loss = "mse"' 'model.target = "inputs"' \
  'model.input_shape = [784]' 'data.source = "digits"' 'data.train_samples = 2000' 'train.epochs = 2' > identity.toml
"$trainer" identity.toml --output_dir identity > identity.log 2>&1 || fail "identity: exit code $?"
tail -n 1 identity.log | grep -q '^test loss 0\.0' || fail "identity: $(tail -n 1 identity.log)"
! grep -q 'batch norm' identity.log || fail "a batch norm is told where there is none"

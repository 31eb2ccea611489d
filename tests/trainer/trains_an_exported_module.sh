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
awk -v a="$(tail -n 1 run.log | sed -n 's/^test accuracy //p')" 'BEGIN { exit !(a >= 0.9) }' ||
  fail "$(tail -n 1 run.log)"
/usr/bin/python3 - << 'EOF' || fail "python reads something else"
import torch
trained, former = torch.jit.load("out/trained_model.pt"), torch.jit.load("model.pt")
assert not torch.equal(trained.head.weight, former.head.weight)
assert torch.equal(trained.unused.weight, former.unused.weight)
saved = torch.jit.load("out/checkpoints/best.pt").model
assert saved.head.weight.shape == (10, 676)
assert trained(torch.rand(2, 1, 28, 28)).shape == (2, 10)
EOF

printf '%s\n' 'workload = "torchscript"' 'model.file = "identity.pt"' 'model.loss = "mse"' 'model.target = "inputs"' \
  'model.input_shape = [784]' 'data.source = "digits"' 'data.train_samples = 2000' 'train.epochs = 2' > identity.toml
"$trainer" identity.toml --output_dir identity > identity.log 2>&1 || fail "identity: exit code $?"
tail -n 1 identity.log | grep -q '^test loss 0\.0' || fail "identity: $(tail -n 1 identity.log)"

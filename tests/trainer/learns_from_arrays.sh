#!/bin/bash
# SPDX-License-Identifier: MIT
# A user's own data: files that NumPy wrote, and a function in Python that gives batches, teach two ranks the same; PyTorch computes
# with the trained model what the log says. A mistake in them is named, and nothing is trained.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/harness.sh"
/usr/bin/python3 -c 'import numpy, torch' 2> /dev/null || { [ -z "${CI:-}" ] || fail 'no python3-torch'; echo 'SKIPPED: needs python3-torch'; exit 77; }

# Points of the plane, whose class is the quarter that they are in.
cat > points.py << 'EOF'
import numpy

def batches(name):
    points = numpy.random.default_rng(1 if name == "train" else 2).normal(size=(2000 if name == "train" else 500, 2))
    classes = 2 * (points[:, 0] > 0) + (points[:, 1] > 0)
    for begin in range(0, len(points), 300):
        yield points[begin:begin + 300].astype("float32"), classes[begin:begin + 300]

def without_targets(name):
    yield from (inputs for inputs, _ in batches(name))

def fails(name):
    yield from batches(name)
    raise ValueError("no more points")

def infinite(name):
    yield numpy.array([[1, 2], [3, numpy.inf]]), numpy.array([0, 1])
EOF
/usr/bin/python3 - << 'EOF'
import numpy
from points import batches
for name in "train", "test":
    for letter, parts in zip("xy", zip(*batches(name))):
        numpy.save(f"{letter}_{name}.npy", numpy.concatenate(parts))
EOF
experiment() {  # WORKLOAD TOML...
  printf 'workload = "%s"\n' "$1" > e.toml
  printf '%s\n' 'train.epochs = 8' 'optimizer.learning_rate = 0.01' 'checkpoint.every_epochs = 0' 'data.source = "npy"' "${@:2}" >> e.toml
}
from_python() { sed -i '/data.source/d' e.toml && printf '%s\n' 'data.source = "python"' 'data.python = "/usr/bin/python3"' "data.iterator = \"$1\"" >> e.toml; }

experiment classifier
"$trainer" e.toml --nproc_per_node 2 --output_dir files --seed 3 > files.log 2>&1 || fail "files: exit code $?"
experiment classifier
from_python points:batches
"$trainer" e.toml --nproc_per_node 2 --output_dir python --seed 3 > python.log 2>&1 || fail "a function: exit code $?"
[ "$(metric files epoch loss)" = "$(metric python epoch loss)" ] || fail "the same numbers teach other things"
cmp files/trained_model.pt python/trained_model.pt || fail "the models differ"
grep -Eq '^epoch 8/8 done .* train accuracy 0\.9[0-9]*  test loss 0\.[0-9]*  test accuracy 0\.9[0-9]*' files.log || fail "no accuracies: $(tail -n 2 files.log)"
/usr/bin/python3 - "$(metric files epoch test_accuracy | tail -n 1)" "$(metric files epoch train_accuracy | tail -n 1)" << 'EOF' || fail "PyTorch computes something else"
import sys, numpy, torch
from torch.nn.functional import linear
saved = torch.load("files/trained_model.pt", weights_only=True)
assert list(saved) == ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"], list(saved)
def accuracy(name):
    hidden = linear(torch.from_numpy(numpy.load(f"x_{name}.npy")), saved["fc1.weight"], saved["fc1.bias"]).relu()
    answers = linear(hidden, saved["fc2.weight"], saved["fc2.bias"]).argmax(1).numpy()
    return (answers == numpy.load(f"y_{name}.npy")).mean()
assert abs(accuracy("test") - float(sys.argv[1])) < 1e-9, (accuracy("test"), sys.argv)
# In training it is that of the models on the way.
assert abs(accuracy("train") - float(sys.argv[2])) < 0.03, (accuracy("train"), sys.argv)
EOF
experiment autoencoder 'model.hidden = [2]' 'model.output_activation = "none"'
from_python points:without_targets
"$trainer" e.toml --output_dir autoencoder > autoencoder.log 2>&1 || fail "an autoencoder: exit code $?"
! grep -q accuracy autoencoder.log || fail "an autoencoder has an accuracy"

refused() {  # PATTERN, of e.toml
  local code=0
  "$trainer" e.toml --nproc_per_node 2 --output_dir refused > out.log 2> err.log || code=$?
  [ $code = 2 ] || fail "$1: exit code $code"
  [ "$(grep -c '^dtool-trainer: ' err.log)" = 1 ] || fail "$1: not one message"
  grep -q "^dtool-trainer: .*$1" err.log || fail "the message lacks '$1': $(cat err.log)"
  ! grep -q samples/s out.log || fail "$1: it trained"
}
iterator_refused() { experiment classifier && from_python "$1" && refused "$2"; }
iterator_refused points:fails 'data.iterator: the process of points:fails ended with exit code 1 (process [0-9]*); its last words: ValueError: no more points'
iterator_refused points:none_such "last words: AttributeError: module 'points' has no attribute 'none_such'"
iterator_refused no_such_module:batches "last words: ModuleNotFoundError: No module named 'no_such_module'"
iterator_refused points:without_targets 'last words: IndexError: tuple index out of range'
iterator_refused points:infinite 'data.iterator: points:infinite("train"): its array of inputs has inf in row 1'
experiment classifier 'data.test_targets = "none.npy"'
refused "no none.npy in '.'"
experiment classifier 'data.train_targets = "x_train.npy"'
refused 'x_train.npy has no whole number for each sample'
experiment classifier 'data.train_targets = "y_test.npy"'
refused 'y_test.npy has 500 rows for 2000 samples'
experiment classifier 'data.iterator = "points:batches"'
refused 'data.iterator is only for data.source = "python"'

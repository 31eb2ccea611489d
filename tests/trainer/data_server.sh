# SPDX-License-Identifier: MIT
# Sourced after harness.sh by the tests that download: a server on loopback with an image set of three megabytes.
# shellcheck shell=bash disable=SC2034,SC2154
tests_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if ! command -v python3 > /dev/null; then
  [ -z "${CI:-}" ] || fail "no python3, and CI could have it: tests/dependencies test"
  echo "SKIPPED: needs python3"
  exit 77
fi
# A proxy of the user's would send loopback elsewhere.
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy

names=(train-images train-labels t10k-images t10k-labels)

# 28 x 28 images of noise with ten classes in turn: 4000 for training, 200 for the test.
make_images() {
  python3 - "$1" << 'PYTHON'
import random, struct, sys
random.seed(1)
for name, count in (("train", 4000), ("t10k", 200)):
    with open(f"{sys.argv[1]}/{name}-images", "wb") as file:
        file.write(struct.pack(">IIII", 0x803, count, 28, 28) + random.randbytes(count * 784))
    with open(f"{sys.argv[1]}/{name}-labels", "wb") as file:
        file.write(struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count)))
PYTHON
}

mkdir served
make_images served
python3 "$tests_folder/data_server.py" served port requests > server.out 2>&1 &
server_pid=$!
started+=("$server_pid")
await 30 "the server" test -s port
server=http://127.0.0.1:$(cat port)
touch requests

# image_experiment FILE FOLDER MIRRORS [TOML line]...: MIRRORS as `"a", "b"`, $server/ before each is the test's.
image_experiment() {
  local file=$1 folder=$2 mirrors=$3 name
  shift 3
  {
    echo 'workload = "classifier"'
    echo 'train.epochs = 1'
    echo 'checkpoint.every_epochs = 0'
    echo 'data.source = "idx"'
    echo "data.path = \"$folder\""
    echo 'data.train_images = "train-images"'
    echo 'data.train_labels = "train-labels"'
    echo 'data.test_images = "t10k-images"'
    echo 'data.test_labels = "t10k-labels"'
    echo "data.mirrors = [$mirrors]"
    echo "data.sha256 = [$(for name in "${names[@]}"; do echo "\"$(sha256sum < "served/$name" | cut -d' ' -f1)\""; done | paste -sd,)]"
    printf '%s\n' "$@"
  } > "$file"
}

# How often the file was asked for, at any mirror.
requests_of() { grep -c "/$1 " requests || true; }
same_as_served() {
  local name
  for name in "${names[@]}"; do cmp "$1/$name" "served/$name" || fail "$1/$name is not what was served"; done
  [ -z "$(find "$1" -name '*.part')" ] || fail "$1 has an unfinished file"
}

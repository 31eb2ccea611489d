// SPDX-License-Identifier: MIT
// The checksums are of the unpacked content: mirrors have compressed the files differently.
#include "trainer/data/mnist.h"

namespace dtool::trainer {

std::vector<DataFile> mnist_files() {
  const auto file = [](const char* name, const char* sha256, std::int64_t unpacked_bytes) {
    return DataFile{{name, sha256, Counted::content, unpacked_bytes},
                    Compared::when_others_are_missing};
  };
  return {file("train-images-idx3-ubyte.gz",
               "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db", 47040016),
          file("train-labels-idx1-ubyte.gz",
               "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", 60008),
          file("t10k-images-idx3-ubyte.gz",
               "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", 7840016),
          file("t10k-labels-idx1-ubyte.gz",
               "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", 10008)};
}

std::vector<std::string> mnist_mirrors() {
  return {"https://ossci-datasets.s3.amazonaws.com/mnist",
          "https://storage.googleapis.com/cvdf-datasets/mnist"};
}

}  // namespace dtool::trainer

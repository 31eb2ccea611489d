// SPDX-License-Identifier: MIT
// Facts about MNIST: http://yann.lecun.com/exdb/mnist/.
#pragma once

#include <string>
#include <vector>

#include "trainer/data/data_files.h"

namespace dtool::trainer {

/// MNIST's four files with their names on mirrors: training images and labels, test images and
/// labels.
std::vector<DataFile> mnist_files();

/// URLs of folders that hold them.
std::vector<std::string> mnist_mirrors();

}  // namespace dtool::trainer

// What dtool knows of MNIST: http://yann.lecun.com/exdb/mnist/.
#pragma once

#include <string>
#include <vector>

#include "trainer/data/data_files.h"

namespace dtool::trainer {

/// MNIST's four files, as its mirrors call them: training images and labels, test images and
/// labels.
std::vector<DataFile> mnist_files();

/// Folders on the network that hold them.
std::vector<std::string> mnist_mirrors();

}  // namespace dtool::trainer

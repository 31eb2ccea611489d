// SPDX-License-Identifier: MIT
// Numbers worked out by a script in Python from the formulas of the papers: arrays go to it and
// come back as files.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/trainer/own_folder.h"

namespace dtool::trainer {

/// A test that compares with tests/trainer/reinforcement_reference.py. It is skipped where Python
/// has no PyTorch, but not in continuous integration.
class WithReference : public OwnFolder {
 protected:
  void SetUp() override {
    if (std::system("/usr/bin/python3 -c 'import numpy, torch' > /dev/null 2>&1") == 0) return;
    ASSERT_EQ(std::getenv("CI"), nullptr) << "python3-torch is not installed";
    GTEST_SKIP() << "needs python3-torch";
  }

  /// Gives the script an array, in NumPy's format.
  void give(const std::string& name, const at::Tensor& values) {
    const bool is_byte = values.scalar_type() == at::kByte;
    const at::Tensor dense = values.detach().to(is_byte ? at::kByte : at::kDouble).contiguous();
    std::string shape;
    for (const auto size : dense.sizes()) shape += fmt::format("{},", size);
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                     is_byte ? "|u1" : "<f8", shape);
    header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    std::ofstream file(folder_ / (name + ".npy"), std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size() % 256)
         << static_cast<char>(header.size() / 256) << header;
    file.write(static_cast<const char*>(dense.data_ptr()),
               static_cast<std::streamsize>(dense.nbytes()));
  }

  /// Has the script work out `part` from what was given.
  void work_out(const std::string& part) {
    const auto command = fmt::format(
        "/usr/bin/python3 {}/tests/trainer/reinforcement_reference.py {} {} > {}/log 2>&1",
        DTOOL_SOURCE_DIR, part, folder_.string(), folder_.string());
    const int status = std::system(command.c_str());
    std::ifstream log(folder_ / "log");
    ASSERT_EQ(status, 0) << std::string(std::istreambuf_iterator<char>(log), {});
  }

  /// That no value differs from the script's by more than `tolerance` of the largest.
  void expect_close(const std::string& name, const at::Tensor& ours, double tolerance) {
    std::ifstream file(folder_ / (name + ".out"), std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    ASSERT_EQ(bytes.size(), static_cast<std::size_t>(ours.numel()) * sizeof(double)) << name;
    const at::Tensor reference = at::from_blob(bytes.data(), ours.sizes(), at::kDouble);
    const double largest = reference.abs().max().item<double>();
    EXPECT_GT(largest, 0) << name;
    EXPECT_LE((ours.detach().cpu().to(at::kDouble) - reference).abs().max().item<double>(),
              tolerance * largest)
        << name;
  }
};

}  // namespace dtool::trainer

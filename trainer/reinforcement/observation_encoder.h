// SPDX-License-Identifier: MIT
// What turns the bytes of an observation into a row of values: a table for codes, linear layers for
// numbers, a convolutional network for each picture.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "trainer/model/network.h"
#include "trainer/reinforcement/environments.h"
#include "trainer/reinforcement/policy_settings.h"

namespace dtool::trainer {

/// The running mean and variance of numbers over all steps of all ranks, which checkpoints keep.
class RunningMoments {
 public:
  RunningMoments(std::int64_t count, at::Device device);

  /// Adds `values` [.., count], those of all ranks. A collective operation.
  void update(const at::Tensor& values, const Group& group);
  /// (values - mean) / deviation, no further from 0 than 10. [.., count]
  at::Tensor apply(const at::Tensor& values) const;

  const at::Tensor& variance() const { return variance_; }
  std::vector<NamedTensor> buffers(const std::string& prefix) const;

 private:
  at::Tensor count_;     ///< double []
  at::Tensor mean_;      ///< double [count]
  at::Tensor variance_;  ///< double [count]: 1 at the beginning
};

/// Weights are drawn from the default generator: orthogonal, scaled by sqrt(2); biases are 0.
class ObservationEncoder {
 public:
  /// `prefix` begins the names of its parameters. Throws UsageError if a picture does not fit. With
  /// pictures on a CPU, the process computes with one thread from now on.
  ObservationEncoder(const EnvironmentSpec& spec, const PolicySettings& settings,
                     const std::string& prefix, at::Device device);

  /// Maps uint8 [.., the spec's observation_bytes], on any device, to float [.., width], by
  /// the precision of the settings. `moments`, if any, normalise the numbers. Differentiable in the
  /// parameters.
  at::Tensor encode(const at::Tensor& observations, const RunningMoments* moments) const;
  std::int64_t width() const { return width_; }
  std::vector<NamedTensor> parameters() const { return parameters_; }

 private:
  /// A picture in an observation.
  struct Picture {
    std::int64_t begin;  ///< its first byte
    Shape shape;
    std::size_t layers;  ///< those before the first linear one
    std::size_t all;     ///< all from there on
    std::shared_ptr<const Network> network;
  };

  void add_pictures(const EnvironmentSpec& spec, const PolicySettings& settings,
                    const std::string& prefix);
  at::Tensor look(const Picture& picture, const at::Tensor& rows) const;

  EnvironmentSpec spec_;
  at::Device device_;
  Precision precision_;
  at::Tensor first_rows_;  ///< the first row of the table for each byte of codes
  at::Tensor table_;       ///< [rows of all codes, embedding]; undefined without codes
  std::shared_ptr<const Network> of_numbers_;  ///< null without layers
  std::size_t number_layers_ = 0;
  std::vector<Picture> pictures_;
  std::vector<NamedTensor> parameters_;
  std::int64_t width_ = 0;
};

/// The numbers of observations (uint8 [rows, observation_bytes]), one part after another: float
/// [rows, n], on the same device.
at::Tensor numbers_in(const EnvironmentSpec& spec, const at::Tensor& rows);
/// How many that are.
std::int64_t count_numbers(const EnvironmentSpec& spec);

}  // namespace dtool::trainer

// The Adam optimizer (Kingma and Ba, https://arxiv.org/abs/1412.6980, algorithm 1), in one pass
// over each parameter.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace dtool::trainer {

/// The same numbers as torch::optim::Adam without weight decay, to rounding.
class Adam {
 public:
  struct Rates {
    double learning_rate;
    double beta1;
    double beta2;
    double epsilon;
  };

  Adam(std::vector<at::Tensor> parameters, Rates rates);

  /// One step along the parameters' gradients, which must be defined and laid out as the
  /// parameters.
  void step();

  /// What a checkpoint keeps. The averages have their parameter's shape.
  struct State {
    std::int64_t steps = 0;
    std::vector<at::Tensor> first_moments;
    std::vector<at::Tensor> second_moments;
  };
  State& state() { return state_; }

 private:
  std::vector<at::Tensor> parameters_;
  Rates rates_;
  State state_;
};

}  // namespace dtool::trainer

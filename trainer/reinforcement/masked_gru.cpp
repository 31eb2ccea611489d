// SPDX-License-Identifier: MIT
// Forward: one matrix product for the inputs of all steps, then one product per step and one pass
// over its values. Backward: one pass and one or two products per step; the gradients of the
// weights come last, as products over all steps. The pass is a loop of our own on CPUs, and
// PyTorch's kernel for a cell on GPUs.
#include "trainer/reinforcement/masked_gru.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <tuple>
#include <vector>

#include "trainer/reinforcement/gru_gates.h"

namespace dtool::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

GruWay way_for(const RecurrentWeights& weights, const at::Tensor& inputs) {
  if (weights.recurrent.is_cuda()) return GruWay::kernels;
  const bool floats = weights.recurrent.scalar_type() == at::kFloat &&
                      inputs.scalar_type() == at::kFloat && weights.recurrent.is_cpu();
  return floats ? GruWay::loops : GruWay::operations;
}

/// The values of the forward pass that the backward pass needs, each [T, N, ..].
struct Trace {
  at::Tensor gates;      ///< r, z, n
  at::Tensor candidate;  ///< m
  at::Tensor memory;     ///< the memory before each step, times keep
};

float* row_of(const at::Tensor& tensor, std::int64_t step) {
  return tensor.data_ptr<float>() + step * tensor.stride(0);
}

at::Tensor cell(const RecurrentWeights& weights, const at::Tensor& inputs,
                const at::Tensor& memory) {
  return at::gru_cell(inputs, memory, weights.input.t(), weights.recurrent.t(), weights.input_bias,
                      weights.recurrent_bias);
}

at::Tensor run_steps(const RecurrentWeights& weights, const at::Tensor& keep, const Trace& trace) {
  const auto steps = trace.memory.size(0);
  const GateShape shape{trace.memory.size(1), trace.memory.size(2)};
  at::Tensor out = at::empty_like(trace.memory);
  at::Tensor recurrent = at::empty({shape.rows, 3 * shape.width}, out.options());
  for (std::int64_t t = 0; t < steps; ++t) {
    at::mm_out(recurrent, trace.memory.select(0, t), weights.recurrent);
    const bool is_last = t + 1 == steps;
    gates_forward(shape, {.input_bias = weights.input_bias.data_ptr<float>(),
                          .recurrent_bias = weights.recurrent_bias.data_ptr<float>(),
                          .recurrent = recurrent.data_ptr<float>(),
                          .memory = row_of(trace.memory, t),
                          .next_keep = is_last ? nullptr : row_of(keep, t + 1),
                          .gates = row_of(trace.gates, t),
                          .candidate = row_of(trace.candidate, t),
                          .next_memory = row_of(out, t),
                          .kept_memory = is_last ? nullptr : row_of(trace.memory, t + 1)});
  }
  return out;
}

/// Turns the trace into the gradients at the gates, step by step from the last, and returns the
/// gradient at the memory before the first step, times keep.
at::Tensor run_steps_back(const at::Tensor& recurrent_weights, const at::Tensor& keep,
                          const at::Tensor& gradient, const Trace& trace, at::Tensor& bias) {
  const auto steps = trace.memory.size(0);
  const GateShape shape{trace.memory.size(1), trace.memory.size(2)};
  const at::Tensor transposed = recurrent_weights.t().contiguous();
  const at::Tensor of_r_and_z = transposed.narrow(0, 0, 2 * shape.width);
  const at::Tensor of_n = transposed.narrow(0, 2 * shape.width, shape.width);
  at::Tensor carried = at::zeros({shape.rows, shape.width}, gradient.options());
  for (std::int64_t t = steps - 1; t >= 0; --t) {
    gates_backward(shape, {.gradient = row_of(gradient, t),
                           .next_keep = t + 1 == steps ? nullptr : row_of(keep, t + 1),
                           .memory = row_of(trace.memory, t),
                           .carried = carried.data_ptr<float>(),
                           .gates = row_of(trace.gates, t),
                           .candidate = row_of(trace.candidate, t),
                           .bias = bias.data_ptr<float>()});
    carried.addmm_(trace.gates.select(0, t).narrow(1, 0, 2 * shape.width), of_r_and_z);
    carried.addmm_(trace.candidate.select(0, t), of_n);
  }
  return carried;
}

class MaskedGru : public torch::autograd::Function<MaskedGru> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input_weights,
                            const at::Tensor& recurrent_weights, const at::Tensor& input_bias,
                            const at::Tensor& recurrent_bias, const at::Tensor& inputs,
                            const at::Tensor& memory_at_start, const at::Tensor& keep) {
    const auto steps = inputs.size(0), rows = inputs.size(1), width = recurrent_weights.size(0);
    const auto options = inputs.options();
    Trace trace{at::empty({steps, rows, 3 * width}, options),
                at::empty({steps, rows, width}, options), at::empty({steps, rows, width}, options)};
    at::Tensor flat_gates = trace.gates.view({-1, 3 * width});
    at::mm_out(flat_gates, inputs.flatten(0, 1), input_weights);
    at::Tensor first = trace.memory.select(0, 0);
    at::mul_out(first, memory_at_start, keep.select(0, 0).unsqueeze(1));
    at::Tensor out =
        run_steps({input_weights, recurrent_weights, input_bias, recurrent_bias}, keep, trace);
    context->save_for_backward({input_weights, recurrent_weights, inputs, keep, trace.gates,
                                trace.candidate, trace.memory});
    return out;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& inputs = saved[2];
    const at::Tensor& keep = saved[3];
    const Trace trace{saved[4], saved[5], saved[6]};
    const auto width = trace.memory.size(2);
    at::Tensor bias = at::zeros({4 * width}, inputs.options());
    at::Tensor at_start = run_steps_back(saved[1], keep, gradients[0].contiguous(), trace, bias);
    at_start.mul_(keep.select(0, 0).unsqueeze(1));
    // The trace is used up: a second backward pass through it is refused.
    for (const at::Tensor& each : {trace.gates, trace.candidate})
      each.unsafeGetTensorImpl()->bump_version();

    const at::Tensor at_gates = trace.gates.view({-1, 3 * width});
    const at::Tensor at_candidate = trace.candidate.view({-1, width});
    const at::Tensor memory = trace.memory.view({-1, width});
    at::Tensor recurrent = at::empty_like(saved[1]);
    at::Tensor of_r_and_z = recurrent.narrow(1, 0, 2 * width);
    at::Tensor of_n = recurrent.narrow(1, 2 * width, width);
    at::mm_out(of_r_and_z, memory.t(), at_gates.narrow(1, 0, 2 * width));
    at::mm_out(of_n, memory.t(), at_candidate);
    return {inputs.flatten(0, 1).t().mm(at_gates),
            recurrent,
            bias.narrow(0, 0, 3 * width).clone(),
            at::cat({bias.narrow(0, 0, 2 * width), bias.narrow(0, 3 * width, width)}),
            at_gates.mm(saved[0].t()).view(inputs.sizes()),
            at_start,
            at::Tensor()};
  }
};

/// On a GPU a step is three launches, forward and backward: masks, product, cell.
class MaskedGruOnGpu : public torch::autograd::Function<MaskedGruOnGpu> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input_weights,
                            const at::Tensor& recurrent_weights, const at::Tensor& input_bias,
                            const at::Tensor& recurrent_bias, const at::Tensor& inputs,
                            const at::Tensor& memory_at_start, const at::Tensor& keep) {
    const auto steps = inputs.size(0), rows = inputs.size(1), width = recurrent_weights.size(0);
    const at::Tensor gates = inputs.flatten(0, 1).mm(input_weights).view({steps, rows, 3 * width});
    const at::Tensor kept = at::empty({steps, rows, width}, inputs.options());
    tensor_list saved = {input_weights, recurrent_weights, inputs, keep, kept};
    tensor_list memories;
    at::Tensor memory = memory_at_start;
    for (std::int64_t t = 0; t < steps; ++t) {
      at::Tensor before = kept[t];
      at::mul_out(before, memory, keep[t].unsqueeze(1));
      auto [after, workspace] = at::_thnn_fused_gru_cell(gates[t], before.mm(recurrent_weights),
                                                         before, input_bias, recurrent_bias);
      memories.push_back(memory = after);
      saved.push_back(workspace);
    }
    context->save_for_backward(saved);
    return at::stack(memories);
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &input_weights = saved[0], &inputs = saved[2], &keep = saved[3],
                     &kept = saved[4];
    const at::Tensor transposed = saved[1].t();
    const auto steps = inputs.size(0);
    tensor_list of_inputs(static_cast<std::size_t>(steps)), of_recurrent(of_inputs.size());
    at::Tensor carried;
    for (std::int64_t t = steps - 1; t >= 0; --t) {
      at::Tensor whole = gradients[0][t].contiguous();
      if (carried.defined()) whole = at::addcmul(whole, keep[t + 1].unsqueeze(1), carried);
      const auto cell = at::_thnn_fused_gru_cell_backward(
          whole, saved[static_cast<std::size_t>(5 + t)], /*has_bias=*/false);
      of_inputs[static_cast<std::size_t>(t)] = std::get<0>(cell);
      of_recurrent[static_cast<std::size_t>(t)] = std::get<1>(cell);
      carried = at::addmm(std::get<2>(cell), std::get<1>(cell), transposed);
    }
    const at::Tensor at_gates = at::cat(of_inputs), at_recurrent = at::cat(of_recurrent);
    return {inputs.flatten(0, 1).t().mm(at_gates),
            kept.flatten(0, 1).t().mm(at_recurrent),
            at_gates.sum(0),
            at_recurrent.sum(0),
            at_gates.mm(input_weights.t()).view(inputs.sizes()),
            carried * keep[0].unsqueeze(1),
            at::Tensor()};
  }
};

at::Tensor run_by_operations(const RecurrentWeights& weights, const at::Tensor& inputs,
                             const at::Tensor& memory_at_start, const at::Tensor& keep) {
  std::vector<at::Tensor> memories;
  at::Tensor memory = memory_at_start;
  for (std::int64_t t = 0; t < inputs.size(0); ++t) {
    memory = cell(weights, inputs[t], memory * keep[t].unsqueeze(1));
    memories.push_back(memory);
  }
  return at::stack(memories);
}

}  // namespace

at::Tensor masked_gru(const RecurrentWeights& weights, const at::Tensor& inputs,
                      const at::Tensor& memory_at_start, const at::Tensor& keep,
                      std::optional<GruWay> way) {
  if (!way) way = way_for(weights, inputs);
  if (way == GruWay::operations) {
    return run_by_operations(weights, inputs, memory_at_start, keep);
  }
  const auto apply = [&](auto function) {
    return function(weights.input, weights.recurrent, weights.input_bias, weights.recurrent_bias,
                    inputs.contiguous(), memory_at_start.contiguous(), keep.contiguous());
  };
  if (way == GruWay::kernels) {
    return apply([](const auto&... each) { return MaskedGruOnGpu::apply(each...); });
  }
  return apply([](const auto&... each) { return MaskedGru::apply(each...); });
}

at::Tensor masked_gru_step(const RecurrentWeights& weights, const at::Tensor& inputs,
                           const at::Tensor& memory, const at::Tensor& keep,
                           std::optional<GruWay> way) {
  const c10::NoGradGuard no_gradients;
  const at::Tensor kept = memory * keep.unsqueeze(1);
  if (!way) way = way_for(weights, inputs);
  if (way == GruWay::operations) return cell(weights, inputs, kept);
  const at::Tensor gates = inputs.mm(weights.input);
  const at::Tensor recurrent = kept.mm(weights.recurrent);
  if (way == GruWay::kernels) {
    return std::get<0>(at::_thnn_fused_gru_cell(gates, recurrent, kept, weights.input_bias,
                                                weights.recurrent_bias));
  }
  const at::Tensor candidate = at::empty_like(kept);
  at::Tensor next = at::empty_like(kept);
  gates_forward({kept.size(0), kept.size(1)},
                {.input_bias = weights.input_bias.data_ptr<float>(),
                 .recurrent_bias = weights.recurrent_bias.data_ptr<float>(),
                 .recurrent = recurrent.data_ptr<float>(),
                 .memory = kept.data_ptr<float>(),
                 .next_keep = nullptr,
                 .gates = gates.data_ptr<float>(),
                 .candidate = candidate.data_ptr<float>(),
                 .next_memory = next.data_ptr<float>(),
                 .kept_memory = nullptr});
  return next;
}

Remembered masked_lstm(const RecurrentWeights& weights, const at::Tensor& inputs,
                       const at::Tensor& memory_at_start, const at::Tensor& keep) {
  const auto width = weights.recurrent.size(0);
  const at::Tensor bias = weights.input_bias + weights.recurrent_bias;
  const at::Tensor gates = at::addmm(bias, inputs.flatten(0, 1), weights.input);
  std::vector<at::Tensor> outputs;
  at::Tensor memory = memory_at_start;
  // Parts of one tensor have their gradients put together once, not a step at a time.
  for (const at::Tensor& of_inputs :
       gates.view({inputs.size(0), inputs.size(1), 4 * width}).unbind(0)) {
    const auto t = static_cast<std::int64_t>(outputs.size());
    const at::Tensor kept = memory * keep[t].unsqueeze(1);
    at::Tensor output = kept.narrow(1, 0, width), inside = kept.narrow(1, width, width);
    if (kept.is_cuda()) {
      std::tie(output, inside, std::ignore) =
          at::_thnn_fused_lstm_cell(of_inputs, output.mm(weights.recurrent), inside.contiguous());
    } else {
      const auto gate = at::addmm(of_inputs, output, weights.recurrent).chunk(4, 1);
      inside = gate[1].sigmoid() * inside + gate[0].sigmoid() * gate[2].tanh();
      output = gate[3].sigmoid() * inside.tanh();
    }
    outputs.push_back(output);
    memory = at::cat({output, inside}, 1);
  }
  return {at::stack(outputs), memory};
}

}  // namespace dtool::trainer

// SPDX-License-Identifier: MIT
// On CPUs convolutions go over few pictures at a time, channels last: what one layer writes is then
// still in the cache when the next one reads it. Beside anything else that computes, two threads
// wait for each other more than they do (docs/reinforcement.md has the figures).
#include "trainer/reinforcement/observation_encoder.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>

#include "trainer/reinforcement/view_embedding.h"

namespace dtool::trainer {
namespace {

constexpr std::int64_t kPicturesAtOnce = 64;
constexpr double kFurthest = 10;  ///< normalised numbers are no further from 0

/// The parts of `kind`, side by side: uint8 [rows, their bytes].
at::Tensor bytes_of(const EnvironmentSpec& spec, ObservedKind kind, const at::Tensor& rows) {
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const Observed& each : spec.observations) {
    if (each.kind == kind) parts.push_back(rows.narrow(-1, begin, each.bytes()));
    begin += each.bytes();
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, -1);
}

EnvironmentSpec codes_in(const EnvironmentSpec& spec) {
  EnvironmentSpec codes;
  for (const Observed& each : spec.observations) {
    if (each.kind == ObservedKind::codes) codes.observations.push_back(each);
  }
  return codes;
}

/// Those before the first linear layer.
std::size_t count_convolutional(const std::vector<Layer>& layers) {
  const auto is_linear = [](const Layer& each) { return each.kind == LayerKind::linear; };
  return static_cast<std::size_t>(std::ranges::find_if(layers, is_linear) - layers.begin());
}

}  // namespace

ObservationEncoder::ObservationEncoder(const EnvironmentSpec& spec, const PolicySettings& settings,
                                       const std::string& prefix, at::Device device)
    : spec_(spec), device_(device), precision_(settings.precision) {
  const EnvironmentSpec codes = codes_in(spec);
  if (!codes.observations.empty()) {
    first_rows_ = first_rows_of(codes).to(device);
    table_ = at::empty({embedding_rows(codes), settings.embedding});
    torch::nn::init::orthogonal_(table_, std::sqrt(2.0));
    table_ = table_.to(device).requires_grad_(true);
    parameters_.push_back({prefix + "view.weight", table_});
    width_ += settings.embedding;
  }
  Group here;
  here.device = device;
  if (const auto numbers = count_numbers(spec); numbers > 0) {
    const std::vector<Layer> layers = layers_of_numbers(settings);
    number_layers_ = layers.size();
    of_numbers_ = std::make_shared<Network>(layers, Shape{numbers}, Beginning::orthogonal,
                                            prefix + "numbers.", here);
    std::ranges::copy(of_numbers_->parameters(), std::back_inserter(parameters_));
    width_ += settings.layers.empty() ? numbers : settings.layers.back();
  }
  add_pictures(spec, settings, prefix);
}

void ObservationEncoder::add_pictures(const EnvironmentSpec& spec, const PolicySettings& settings,
                                      const std::string& prefix) {
  Group here;
  here.device = device_;
  const auto is_picture = [](const Observed& each) { return each.kind == ObservedKind::pixels; };
  const bool is_alone = std::ranges::count_if(spec.observations, is_picture) == 1;
  std::int64_t begin = 0;
  for (const Observed& each : spec.observations) {
    if (is_picture(each)) {
      const std::vector<Layer> layers = layers_of_picture(settings, each);
      const std::string name = prefix + "encoder." + (is_alone ? "" : each.name + ".");
      auto network =
          std::make_shared<Network>(layers, each.shape, Beginning::orthogonal, name, here);
      std::ranges::copy(network->parameters(), std::back_inserter(parameters_));
      width_ += count_values(shapes_along(layers, each.shape).back());
      pictures_.push_back(
          {begin, each.shape, count_convolutional(layers), layers.size(), std::move(network)});
    }
    begin += each.bytes();
  }
  if (!pictures_.empty() && device_.is_cpu()) at::set_num_threads(1);
}

at::Tensor ObservationEncoder::encode(const at::Tensor& observations,
                                      const RunningMoments* moments) const {
  const at::Tensor rows = observations.flatten(0, -2).to(device_, /*non_blocking=*/true);
  // The memory and the heads stay float32: the ratio of two probabilities needs its digits, and
  // nearly all of the work is here.
  const Autocast autocast(precision_, device_);
  std::vector<at::Tensor> encoded;
  if (table_.defined()) {
    const at::Tensor codes = bytes_of(spec_, ObservedKind::codes, rows);
    encoded.push_back(device_.is_cpu() ? embed_views(codes, table_, first_rows_)
                                       : embed_views_by_product(codes, table_, first_rows_));
  }
  if (of_numbers_) {
    at::Tensor numbers = numbers_in(spec_, rows);
    if (moments != nullptr) numbers = moments->apply(numbers);
    encoded.push_back(of_numbers_->apply(numbers, 0, number_layers_));
  }
  for (const Picture& each : pictures_) encoded.push_back(look(each, rows));
  const at::Tensor all = encoded.size() == 1 ? encoded[0] : at::cat(encoded, -1);
  auto shape = observations.sizes().vec();
  shape.back() = width_;
  return all.view(shape).to(at::kFloat);
}

at::Tensor ObservationEncoder::look(const Picture& picture, const at::Tensor& rows) const {
  const Shape& shape = picture.shape;
  const at::Tensor bytes = rows.narrow(1, picture.begin, count_values(shape));
  std::vector<at::Tensor> seen;
  const auto at_once = device_.is_cpu() ? kPicturesAtOnce : std::max<std::int64_t>(1, rows.size(0));
  for (const at::Tensor& some : bytes.split(at_once)) {
    const at::Tensor pixels = some.to(at::kFloat)
                                  .mul_(1.0 / 255)
                                  .view({-1, shape[0], shape[1], shape[2]})
                                  .contiguous(at::MemoryFormat::ChannelsLast);
    seen.push_back(picture.network->apply(pixels, 0, picture.layers).flatten(1));
  }
  return picture.network->apply(seen.size() == 1 ? seen[0] : at::cat(seen), picture.layers,
                                picture.all);
}

at::Tensor numbers_in(const EnvironmentSpec& spec, const at::Tensor& rows) {
  const at::Tensor bytes = bytes_of(spec, ObservedKind::numbers, rows);
  const bool is_aligned = bytes.is_contiguous() && bytes.storage_offset() % sizeof(float) == 0 &&
                          bytes.stride(0) % static_cast<std::int64_t>(sizeof(float)) == 0;
  return (is_aligned ? bytes : bytes.clone(at::MemoryFormat::Contiguous)).view(at::kFloat);
}

std::int64_t count_numbers(const EnvironmentSpec& spec) {
  std::int64_t sum = 0;
  for (const Observed& each : spec.observations) {
    if (each.kind == ObservedKind::numbers) sum += each.values();
  }
  return sum;
}

RunningMoments::RunningMoments(std::int64_t count, at::Device device) {
  const auto options = at::TensorOptions(device).dtype(at::kDouble);
  count_ = at::zeros({}, options);
  mean_ = at::zeros({count}, options);
  variance_ = at::ones({count}, options);
}

/// As Chan, Golub and LeVeque combine the sums of two sets ("Updating formulae and a pairwise
/// algorithm for computing sample variances", 1979); those of the new one are around the old mean.
void RunningMoments::update(const at::Tensor& values, const Group& group) {
  const c10::NoGradGuard no_gradients;
  const at::Tensor off = values.flatten(0, -2).to(mean_.device(), at::kDouble) - mean_;
  const auto size = mean_.numel();
  const at::Tensor mine = at::cat({at::full({1}, static_cast<double>(off.size(0)), at::kDouble),
                                   off.sum(0).cpu(), off.square().sum(0).cpu()});
  const auto* const first = mine.data_ptr<double>();
  const std::vector<double> sums = sum_over_ranks(group, {first, first + mine.numel()});
  if (sums[0] == 0) return;
  const at::Tensor all = at::tensor(sums, at::kDouble).to(mean_.device());
  const at::Tensor added = all[0], before = count_.clone();
  const at::Tensor mean = all.narrow(0, 1, size) / added;
  const at::Tensor squares = all.narrow(0, 1 + size, size) - added * mean.square();
  count_.add_(added);
  mean_.add_(mean * added / count_);
  variance_.mul_(before / count_)
      .add_((squares + mean.square() * before * added / count_) / count_);
}

at::Tensor RunningMoments::apply(const at::Tensor& values) const {
  const at::Tensor scale = (variance_ + 1e-8).rsqrt().to(at::kFloat);
  return ((values - mean_.to(at::kFloat)) * scale).clamp(-kFurthest, kFurthest);
}

std::vector<NamedTensor> RunningMoments::buffers(const std::string& prefix) const {
  return {{prefix + "count", count_}, {prefix + "mean", mean_}, {prefix + "variance", variance_}};
}

}  // namespace dtool::trainer

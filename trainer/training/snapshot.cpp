// SPDX-License-Identifier: MIT
// Tensors: `model.<name>`, `optimizer.first.<i>`, `optimizer.second.<i>` and `others.<name>`, in
// this order. The metadata has the numbers, as texts: the fields of Progress and the optimizer's.
#include "trainer/training/snapshot.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "killfiles/printable.h"
#include "ssh/wire/words.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/checkpoint_reader.h"
#include "trainer/training/checkpoint_writer.h"

namespace dtool::trainer {

namespace {

using safetensors::Entry;
using safetensors::Metadata;

constexpr const char* kModel = "model.";
constexpr const char* kFirst = "optimizer.first.";
constexpr const char* kSecond = "optimizer.second.";
constexpr const char* kOthers = "others.";
constexpr const char* kValidationIsLeft = "validation_is_left";
constexpr std::string_view kEnvironment = "environment.";  ///< a prefix in the metadata

/// In the metadata of every checkpoint; another number means other names.
constexpr const char* kVersionKey = "dtool_checkpoint";
constexpr const char* kVersion = "1";

const char* name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::lamb:
      return "lamb";
    case OptimizerKind::adam:
      break;
  }
  return "adam";
}

std::vector<NamedTensor> all_tensors(const Weights& model) {
  auto tensors = model.parameters();
  const auto buffers = model.buffers();
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  return tensors;
}

at::Tensor copy_of(const at::Tensor& tensor) {
  return tensor.detach()
      .to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true)
      .contiguous();
}

std::vector<NamedTensor> copies_of(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> copies;
  for (const NamedTensor& each : tensors) copies.push_back({each.name, copy_of(each.tensor)});
  return copies;
}

struct WholeNumber {
  const char* key;
  std::int64_t Progress::*field;
};

constexpr WholeNumber kWholeNumbers[] = {
    {"epochs", &Progress::epochs},
    {"samples", &Progress::samples},
    {"steps", &Progress::steps},
    {"rollouts", &Progress::rollouts},
    {"stage", &Progress::stage},
    {"stage_epochs", &Progress::stage_epochs},
    {"stage_steps", &Progress::stage_steps},
    {"training_samples", &Progress::training_samples},
};

/// All tensors of a snapshot, in the order in which they are written.
std::vector<NamedTensor> tensors_to_write(const Snapshot& snapshot) {
  const auto& [model, kind, state] = *snapshot.trained;
  std::vector<NamedTensor> all;
  for (const NamedTensor& each : model) all.push_back({kModel + each.name, each.tensor});
  for (std::size_t i = 0; i < state.first.size(); ++i) {
    all.push_back({fmt::format("{}{}", kFirst, i), state.first[i]});
  }
  for (std::size_t i = 0; i < state.second.size(); ++i) {
    all.push_back({fmt::format("{}{}", kSecond, i), state.second[i]});
  }
  for (const NamedTensor& each : snapshot.others) {
    all.push_back({kOthers + each.name, each.tensor});
  }
  return all;
}

Metadata metadata_of(const Snapshot& snapshot) {
  const Progress& progress = snapshot.progress;
  Metadata metadata = {{kVersionKey, kVersion},
                       {"optimizer", name_of(snapshot.trained->kind)},
                       {"optimizer_steps", fmt::format("{}", snapshot.trained->optimizer.steps)},
                       {"seed", fmt::format("{}", progress.seed)},
                       {"world_size", fmt::format("{}", progress.world_size)},
                       {"best_score", fmt::format("{:.17g}", progress.best_score)}};
  for (const auto& [key, field] : kWholeNumbers) metadata[key] = fmt::format("{}", progress.*field);
  if (progress.validation_is_left) metadata[kValidationIsLeft] = "1";
  for (const auto& [name, value] : progress.environment)
    metadata[fmt::format("{}{}", kEnvironment, name)] = value;
  return metadata;
}

const std::string& find_text(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) throw UsageError(fmt::format("its metadata has no {}", key));
  return found->second;
}

template <class Number>
Number find_number(const Metadata& metadata, const std::string& key, Number least) {
  const std::string& text = find_text(metadata, key);
  const auto number = host::parse_number<Number>(text);
  if (number && !(*number < least)) return *number;  // nan is allowed
  throw UsageError(
      fmt::format("its metadata has no number for {} that a run can have, but '{}'", key, text));
}

Progress progress_of(const Metadata& metadata) {
  Progress progress;
  for (const auto& [key, field] : kWholeNumbers) {
    progress.*field = find_number<std::int64_t>(metadata, key, 0);
  }
  progress.seed = find_number<std::uint64_t>(metadata, "seed", 0);
  progress.world_size = find_number<int>(metadata, "world_size", 1);
  progress.best_score =
      find_number(metadata, "best_score", -std::numeric_limits<double>::infinity());
  progress.validation_is_left = metadata.contains(kValidationIsLeft);
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(kEnvironment))
      progress.environment[key.substr(kEnvironment.size())] = value;
  }
  return progress;
}

/// A tensor of the file, and where it goes.
struct Transfer {
  const Entry* entry;
  at::Tensor into;
};

/// Finds the places of what is to be restored, before anything is.
class Fitting {
 public:
  explicit Fitting(const safetensors::Header& header) : metadata_(header.metadata) {
    for (const Entry& each : header.entries) {
      by_name_[each.name] = &each;
      model_tensors_ += each.name.starts_with(kModel) ? 1 : 0;
    }
    const auto version = metadata_.find(kVersionKey);
    if (version == metadata_.end()) throw UsageError("dtool-trainer has not written it");
    if (version->second != kVersion) throw UsageError("a newer dtool-trainer has written it");
  }

  void add(const std::string& name, const at::Tensor& into, const std::string& for_messages) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) throw UsageError(fmt::format("it has no {}", for_messages));
    if (into.sizes() != at::IntArrayRef(found->second->shape)) {
      throw UsageError(fmt::format(
          "{} has shape [{}] in the checkpoint, [{}] in the experiment's "
          "model",
          for_messages, fmt::join(found->second->shape, ", "), fmt::join(into.sizes(), ", ")));
    }
    type_of(*found->second);
    transfers_.push_back({found->second, into});
  }

  void add_model(const Weights& model) {
    const auto tensors = all_tensors(model);
    if (model_tensors_ != tensors.size()) {
      throw UsageError(fmt::format("it holds a model of {} tensors, the experiment's has {}",
                                   model_tensors_, tensors.size()));
    }
    for (const NamedTensor& each : tensors) {
      add(kModel + each.name, each.tensor.detach(), each.name);
    }
  }

  void add_optimizer(Optimizer& optimizer) {
    const std::string kind = find_text(metadata_, "optimizer");
    if (kind != name_of(optimizer.kind())) {
      throw UsageError(fmt::format("it holds the state of {}, the experiment's optimizer is {}",
                                   killfiles::printable_start(kind, 200),
                                   name_of(optimizer.kind())));
    }
    add_all(kFirst, optimizer.state().first);
    add_all(kSecond, optimizer.state().second);
  }

  const std::vector<Transfer>& transfers() const { return transfers_; }

 private:
  void add_all(const char* prefix, const std::vector<at::Tensor>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto name = fmt::format("{}{}", prefix, i);
      add(name, tensors[i], name);
    }
  }

  const Metadata& metadata_;
  std::map<std::string, const Entry*> by_name_;
  std::size_t model_tensors_ = 0;
  std::vector<Transfer> transfers_;
};

/// The result of `read`, or a UsageError that names the file.
template <class Read>
auto read_checkpoint(const CheckpointReader& from, Read read) {
  return with_place(from.name() + " does not fit", read);
}

void read_all(CheckpointReader& from, const std::vector<Transfer>& transfers) {
  for (const Transfer& each : transfers) from.read(*each.entry, each.into);
}

std::vector<NamedTensor> read_others(CheckpointReader& from) {
  std::vector<NamedTensor> others;
  for (const Entry& each : from.header().entries) {
    if (!each.name.starts_with(kOthers)) continue;
    others.push_back({each.name.substr(std::string_view(kOthers).size()), from.read(each)});
  }
  return others;
}

}  // namespace

TrainedState copy_state(const Weights& model, Optimizer& optimizer) {
  TrainedState trained{copies_of(all_tensors(model)), optimizer.kind(), {}};
  const Optimizer::State& state = optimizer.state();
  trained.optimizer.steps = state.steps;
  for (const auto& each : state.first) trained.optimizer.first.push_back(copy_of(each));
  for (const auto& each : state.second) trained.optimizer.second.push_back(copy_of(each));
  return trained;
}

Snapshot take_snapshot(std::shared_ptr<const TrainedState> trained, const Progress& progress,
                       const std::vector<NamedTensor>& others) {
  return {std::move(trained), progress, copies_of(others)};
}

void check_types(const Weights& model) {
  for (const NamedTensor& each : all_tensors(model)) {
    if (dtype_of(each.tensor.scalar_type()) != nullptr) continue;
    throw UsageError(fmt::format("no checkpoint can hold {}, which has numbers of type {}",
                                 each.name, at::toString(each.tensor.scalar_type())));
  }
}

void write(const Snapshot& snapshot, const Sink& sink) {
  const auto tensors = tensors_to_write(snapshot);
  std::vector<Entry> entries;
  for (const auto& [name, tensor] : tensors) {
    safetensors::append(entries, name, dtype_of(tensor.scalar_type()), tensor.sizes().vec());
  }
  sink(safetensors::header_text(entries, metadata_of(snapshot)));
  for (const NamedTensor& each : tensors) {
    sink({static_cast<const char*>(each.tensor.data_ptr()), each.tensor.nbytes()});
  }
}

Restored restore(CheckpointReader& from, const Weights& model, Optimizer& optimizer) {
  return read_checkpoint(from, [&] {
    Fitting fitting(from.header());
    fitting.add_model(model);
    fitting.add_optimizer(optimizer);
    for (const Entry& each : from.header().entries) type_of(each);
    Restored restored{progress_of(from.header().metadata), {}};
    const auto steps = find_number<std::int64_t>(from.header().metadata, "optimizer_steps", 0);
    read_all(from, fitting.transfers());
    optimizer.state().steps = steps;
    restored.others = read_others(from);
    return restored;
  });
}

Progress restore_model(CheckpointReader& from, const Weights& model) {
  return read_checkpoint(from, [&] {
    Fitting fitting(from.header());
    fitting.add_model(model);
    const Progress progress = progress_of(from.header().metadata);
    read_all(from, fitting.transfers());
    return progress;
  });
}

// The words of `--checkpoint`, and what may not differ between the two runs.

namespace {

/// The newest whole checkpoint of `folder`; nothing if it has none at all. Names each newer one
/// that is spoilt. Throws UsageError if all are.
std::optional<std::filesystem::path> newest_whole(const std::filesystem::path& folder) {
  std::string fault;
  for (const KeptCheckpoint& each : checkpoints_newest_first(folder)) {
    if (!fault.empty()) fmt::print("note: {}; an older one is looked for\n", fault);
    fault = fault_of(CheckpointFile(each.file));
    if (fault.empty()) return each.file;
  }
  if (fault.empty()) return std::nullopt;
  throw UsageError(fmt::format("{}, and no checkpoint beside it is whole", fault));
}

}  // namespace

/// A run that began under a former version does not silently begin anew.
std::filesystem::path checkpoint_of(const CommandLine& options) {
  const std::filesystem::path file = *options.checkpoint;
  if (file == "latest" || file == "auto") {
    const auto folder = checkpoints_of(options);
    if (const auto latest = newest_whole(folder)) return *latest;
    if (const auto former = former_checkpoint(folder)) return *former;
    if (file == "auto") return {};
    throw UsageError(fmt::format("--checkpoint latest: none in {}", folder.string()),
                     "give the same --output_dir as the earlier training");
  }
  if (std::filesystem::is_regular_file(file)) return file;
  throw UsageError(fmt::format("no checkpoint at {}", file.string()));
}

namespace {

void check_fit(const Resumed& resumed, const Progress& fresh, std::size_t stages) {
  const Progress& saved = resumed.progress;
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("{} does not fit: {}", resumed.from, why));
  };
  if (saved.stage >= static_cast<std::int64_t>(stages)) {
    refuse(fmt::format("it was written in stage {} of an experiment, this one has {}",
                       saved.stage + 1, stages));
  }
  if (saved.training_samples != fresh.training_samples) {
    refuse(fmt::format("its data had {} training samples, this run's has {}",
                       saved.training_samples, fresh.training_samples));
  }
  if (saved.samples > saved.training_samples) {
    refuse(
        fmt::format("it has {} samples of an epoch of {}", saved.samples, saved.training_samples));
  }
  if (saved.samples > 0 && saved.seed != fresh.seed) {
    refuse(
        fmt::format("it was written within an epoch that seed {} had shuffled, this run has "
                    "seed {}",
                    saved.seed, fresh.seed));
  }
}

}  // namespace

std::filesystem::path checkpoints_of(const CommandLine& options) {
  return options.output_dir / "checkpoints";
}

Resumed resume_from(const CommandLine& options, const Group& group, Weights& model,
                    Optimizer& optimizer, const Progress& fresh, std::size_t stages) {
  CheckpointFile file;
  if (group.rank == 0) {
    if (const auto path = checkpoint_of(options); !path.empty()) file = CheckpointFile(path);
  }
  CheckpointReader reader(group, "the checkpoint to resume from", std::move(file));
  Resumed resumed;
  if (!reader.has_file()) {
    resumed.progress = fresh;
    return resumed;
  }
  resumed.from = reader.name();
  auto restored = restore(reader, model, optimizer);
  resumed.others = std::move(restored.others);
  Progress& saved = resumed.progress;
  saved = restored.progress;
  resumed.saved_world_size = saved.world_size;
  check_fit(resumed, fresh, stages);
  if (group.rank == 0 && (saved.seed != fresh.seed || saved.world_size != fresh.world_size)) {
    fmt::print(
        "note: the checkpoint is of a run with seed {} on {} ranks, this one has seed {} on {}\n",
        saved.seed, saved.world_size, fresh.seed, fresh.world_size);
  }
  // An edited module or another version may be meant, so it is no fault.
  for (const auto& [name, now] : fresh.environment) {
    const auto before = saved.environment.find(name);
    if (group.rank != 0 || before == saved.environment.end() || before->second == now) continue;
    fmt::print("note: the environments' {} is '{}', in the checkpoint '{}'\n", name, now,
               killfiles::printable(before->second, killfiles::Allowed::nothing));
  }
  saved.seed = fresh.seed;
  saved.world_size = fresh.world_size;
  saved.environment = fresh.environment;
  return resumed;
}

}  // namespace dtool::trainer

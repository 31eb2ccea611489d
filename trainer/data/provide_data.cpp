// SPDX-License-Identifier: MIT
// The ranks meet again in the run's store. While they wait, RequestExchange watches for failures: a
// rank that fails or is killed ends the wait for all.
#include "trainer/data/provide_data.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "trainer/data/data_offer.h"
#include "trainer/ranks/process_group.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

void provide_data(FileSettings& settings, const Meeting& meeting) {
  if (settings.files.empty()) return;
  const bool alone = count_machines(meeting.members) == 1;
  TransferProgress progress(alone ? "" : fmt::format("{}: ", meeting.me().host));
  const Waits waits = meeting.place.local_rank == 0 ? Waits::told : Waits::silent;
  settings.paths =
      provide_files(settings.files, settings.place, process_environment, waits, progress);
  wait_for_all_ranks(meeting, "files");
}

// The lowest rank of a machine loads, and tells the others through the run's store where the
// tensors lie.

namespace {

// What the loading rank tells instead of an offer.
constexpr const char* kLoadYourOwn = "load your own";
constexpr const char* kMistaken = "mistaken";

using DataTensors = std::array<at::Tensor, 4>;

DataTensors data_tensors_of(const DataSets& sets) {
  return {sets.train.inputs, sets.train.targets, sets.test.inputs, sets.test.targets};
}

DataSets with_tensors(const DataSets& sets, const DataTensors& tensors) {
  return {{tensors[0], tensors[1]}, {tensors[2], tensors[3]}, sets.shape, sets.outputs};
}

/// As in DataSet's own contract.
Numbers numbers_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kByte) return Numbers::uint8;
  return tensor.scalar_type() == at::kLong ? Numbers::int64 : Numbers::float32;
}

at::ScalarType scalar_type_of(Numbers numbers) {
  if (numbers == Numbers::uint8) return at::kByte;
  return numbers == Numbers::int64 ? at::kLong : at::kFloat;
}

/// A copy for each rank would take even more.
bool is_shortage(const std::system_error& problem) {
  return problem.code() == std::errc::not_enough_memory ||
         problem.code() == std::errc::no_space_on_device;
}

/// The ranks of this rank's machine, and how they speak to each other.
class MachineData {
 public:
  MachineData(const Loader& load, const Meeting& meeting) : loader_(load), meeting_(meeting) {
    for (const Member& each : meeting.members) {
      if (on_one_machine(each, meeting.me())) beside_.push_back(each.rank);
    }
    key_ = fmt::format("data/{}", beside_.front());
  }

  DataSets load() {
    if (beside_.size() == 1) return load_own();
    return beside_.front() == meeting_.place.rank ? load_for_all() : take_over();
  }

  /// Every rank has what it needs.
  void close() {
    if (shared_) shared_->forget_names();
  }

 private:
  DataSets load_own() const {
    return loader_({std::pmr::get_default_resource(), [](auto*) {}});
  }
  DataSets load_for_all();
  DataSets take_over();
  std::optional<DataSets> open(const DataOffer& offer) const;
  DataOffer offer_of(const DataSets& sets) const;

  void tell(const std::string& key, const std::string& text) const;
  void tell_mistake(const UsageError& mistake) const;
  std::string hear(const std::string& key) const;
  void note(const std::string& why) const;

  const Loader& loader_;
  const Meeting& meeting_;
  std::vector<int> beside_;  ///< ranks of this machine, this one too
  std::string key_;          ///< the key in the store
  std::shared_ptr<SharedValues> shared_;
};

void MachineData::tell(const std::string& key, const std::string& text) const {
  collectively([&] { put(*meeting_.store, key, text); });
}

void MachineData::tell_mistake(const UsageError& mistake) const {
  tell(key_ + "/mistake", mistake.what());
  tell(key_ + "/hint", mistake.hint);
  tell(key_, kMistaken);
}

std::string MachineData::hear(const std::string& key) const {
  std::string text;
  collectively([&] {
    meeting_.store->wait({key}, kForAsLongAsItTakes);
    text = text_at(*meeting_.store, key);
  });
  return text;
}

void MachineData::note(const std::string& why) const {
  fmt::print("note: each rank on machine {} ({}) has its own copy of the data: {}\n",
             meeting_.me().machine, meeting_.me().host, why);
  std::fflush(stdout);
}

DataSets MachineData::load_for_all() {
  try {
    shared_ = std::make_shared<SharedValues>();
    DataSets sets = loader_(shared_);
    shared_->freeze();
    tell(key_, to_text(offer_of(sets)));
    return sets;
  } catch (const UsageError& mistake) {
    tell_mistake(mistake);
    throw;
  } catch (const std::system_error& problem) {
    shared_.reset();
    if (is_shortage(problem)) {
      const UsageError mistake(
          fmt::format(
              "machine {} ({}) has too little memory for the data, which its ranks share: {}",
              meeting_.me().machine, meeting_.me().host, problem.what()),
          "train on fewer samples, or on machines with more memory");
      tell_mistake(mistake);
      throw mistake;
    }
    tell(key_, kLoadYourOwn);
    note(problem.what());
    return load_own();
  }
}

DataOffer MachineData::offer_of(const DataSets& sets) const {
  DataOffer offer{sets.shape, sets.outputs, {}};
  const DataTensors tensors = data_tensors_of(sets);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& each = tensors[i];
    if (!each.is_contiguous() || scalar_type_of(numbers_of(each)) != each.scalar_type())
      throw std::logic_error("a loader's tensor is not contiguous, or of another type");
    offer.tensors[i] = {numbers_of(each), each.sizes().vec(), shared_->place_of(each.data_ptr())};
  }
  return offer;
}

DataSets MachineData::take_over() {
  const std::string told = hear(key_);
  if (told == kMistaken) throw UsageError(hear(key_ + "/mistake"), hear(key_ + "/hint"));
  if (told == kLoadYourOwn) return load_own();
  const auto offer = parse_offer(told);
  auto sets = offer ? open(*offer) : std::nullopt;
  if (sets) return std::move(*sets);
  std::int64_t unable = 0;
  collectively([&] { unable = meeting_.store->add(key_ + "/unable", 1); });
  if (unable == 1) note(fmt::format("rank {} cannot see that of another", meeting_.place.rank));
  return load_own();
}

/// Absent if this rank cannot see the memory.
std::optional<DataSets> MachineData::open(const DataOffer& offer) const {
  // The key is the place's name: a test may be the training set, too.
  std::map<std::string, at::Tensor> opened;
  DataTensors tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const OfferedTensor& each = offer.tensors[i];
    at::Tensor& there = opened[each.place.name];
    if (!there.defined()) {
      auto values = OpenedValues::open(each.place);
      if (!values) return std::nullopt;
      const auto kept = std::make_shared<OpenedValues>(std::move(*values));
      there = at::from_blob(
          kept->data(), each.shape, [kept](void*) {},
          at::TensorOptions(scalar_type_of(each.numbers)));
    }
    tensors[i] = there;
  }
  return with_tensors({{}, {}, offer.sample_shape, offer.outputs}, tensors);
}

/// Tensors that are one stay one.
DataSets to_device(const DataSets& sets, at::Device device) {
  if (device.is_cpu()) return sets;
  const DataTensors here = data_tensors_of(sets);
  DataTensors there;
  for (std::size_t i = 0; i < here.size(); ++i) {
    const auto same = static_cast<std::size_t>(
        std::ranges::find_if(here, [&](const auto& each) { return each.is_same(here[i]); }) -
        here.begin());
    there[i] = same < i ? there[same] : here[i].to(device);
  }
  return with_tensors(sets, there);
}

}  // namespace

DataSets load_on_machine(const Loader& load, const Meeting& meeting, at::Device device) {
  MachineData machine(load, meeting);
  // Until the other ranks have opened it, also where only copies on a GPU are used here.
  const DataSets loaded = machine.load();
  DataSets sets = to_device(loaded, device);
  wait_for_all_ranks(meeting, "loaded");
  machine.close();
  return sets;
}

}  // namespace dtool::trainer

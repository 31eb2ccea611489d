// SPDX-License-Identifier: MIT
// One function per source.
#include "trainer/data/data_settings.h"

#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {
namespace {

void read_random(TomlReader& reader, DataSettings& data) {
  data.features = reader.integer("data.features", 10, {1, 1 << 24});
  data.random_targets =
      choose<RandomTargets>(reader, "data.random_targets",
                            {{"noise", RandomTargets::noise}, {"linear", RandomTargets::linear}});
  data.train_samples = reader.integer("data.train_samples", 10000, {1, 100'000'000});
  data.test_samples = reader.integer("data.test_samples", 0, {0, 100'000'000});
}

std::vector<Choice<DataSource>> sources_of(ModelKind kind) {
  std::vector<Choice<DataSource>> sources = {{"csv", DataSource::csv}};
  if (kind != ModelKind::regression) {
    sources.insert(
        sources.begin(),
        {{"mnist", DataSource::mnist}, {"digits", DataSource::digits}, {"idx", DataSource::idx}});
  }
  if (kind != ModelKind::classifier) sources.push_back({"random", DataSource::random});
  return sources;
}

/// What the columns of a model's table must hold.
TargetKind targets_of(const ModelSettings& model) {
  if (model.target == Target::inputs) return TargetKind::none;
  return model.loss == Loss::cross_entropy ? TargetKind::classes : TargetKind::values;
}

}  // namespace

DataSettings read_data(TomlReader& reader, ModelKind kind, const ModelSettings& model) {
  DataSettings data;
  data.source = choose(reader, "data.source", sources_of(kind), Default::none);
  if (data.source != DataSource::random) {
    refuse_all(reader, {"data.features", "data.random_targets"},
               "is only for data.source = \"random\"");
  }
  if (data.source == DataSource::digits) {
    data.train_samples = reader.integer("data.train_samples", 20000, {1, 10'000'000});
    data.test_samples = reader.integer("data.test_samples", 2000, {1, 10'000'000});
  } else if (data.source == DataSource::random) {
    read_random(reader, data);
  } else {
    refuse_all(reader, {"data.train_samples", "data.test_samples", "data.drawing_seed"},
               "is only for data that is drawn");
    data.files = read_file_settings(reader, data.source == DataSource::mnist ? FileSource::mnist
                                            : data.source == DataSource::idx ? FileSource::idx
                                                                             : FileSource::csv);
  }
  if (data.files.files.empty()) {
    refuse_file_settings(reader);
    data.drawing_seed =
        static_cast<std::uint64_t>(reader.integer("data.drawing_seed", 0, {0, kMany}));
  }
  data.files.targets = targets_of(model);
  data.prefetch = reader.integer_if_given("data.prefetch", {0, 1024});
  return data;
}

}  // namespace dtool::trainer

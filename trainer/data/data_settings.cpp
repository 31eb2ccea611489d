// SPDX-License-Identifier: MIT
// One function per source. A key that belongs to another source is refused rather than ignored.
#include "trainer/data/data_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

const std::vector<std::string> kPlaceKeys = {"data.path", "data.copy_to", "data.download",
                                             "data.mirrors", "data.stall_seconds"};
const std::vector<std::string> kIdxKeys = {"data.train_images", "data.train_labels",
                                           "data.test_images", "data.test_labels"};
const std::vector<std::string> kNpyKeys = {"data.train_inputs", "data.train_targets",
                                           "data.test_inputs", "data.test_targets"};
const std::vector<std::string> kCsvKeys = {"data.train_file", "data.test_file", "data.test_share",
                                           "data.split_seed", "data.separator", "data.header",
                                           "data.inputs",     "data.targets",   "data.standardise"};

/// Whether `text` is written as `sha256_of` and sha256sum write.
bool is_sha256(const std::string& text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::all_of(text.begin(), text.end(), is_digit);
}

/// URLs of folders that hold MNIST's files.
std::vector<std::string> mnist_mirrors() {
  return {"https://ossci-datasets.s3.amazonaws.com/mnist",
          "https://storage.googleapis.com/cvdf-datasets/mnist"};
}

std::string standard_mnist_folder() {
  const char* folder = std::getenv("DTOOL_MNIST_DIR");
  return folder != nullptr && *folder != '\0' ? folder : "~/.dtool/data/mnist";
}

void check_mirror(const TomlReader& reader, const std::string& mirror) {
  for (const char* each : {"http://", "https://", "ftp://", "ftps://", "file://"}) {
    if (mirror.starts_with(each)) return;
  }
  throw UsageError(fmt::format("{}: data.mirrors: '{}' is no address of a folder",
                               reader.where("data.mirrors"), mirror),
                   "one begins with https://, http://, ftp://, ftps:// or file://");
}

std::string required_text(TomlReader& reader, const std::string& key) {
  const auto value = reader.text(key, "");
  if (value.empty()) throw UsageError(fmt::format("{}: {} is missing", reader.where(key), key));
  return value;
}

DataPlace read_place(TomlReader& reader, const std::string& folder,
                     const std::vector<std::string>& mirrors) {
  DataPlace place;
  place.path = reader.text("data.path", folder);
  place.copy_to = reader.text("data.copy_to", "");
  const bool download = reader.boolean("data.download", true);
  place.mirrors.urls = reader.texts("data.mirrors", mirrors);
  for (const auto& each : place.mirrors.urls) check_mirror(reader, each);
  place.mirrors.stall = std::chrono::seconds(reader.integer("data.stall_seconds", 30, {1, 86400}));
  if (!download) place.mirrors.urls.clear();
  return place;
}

/// Files named by the user, each with its checksum if `data.sha256` has them.
std::vector<DataFile> named_files(TomlReader& reader, const std::vector<std::string>& names,
                                  const DataPlace& place) {
  const auto sums = reader.texts("data.sha256", {});
  const bool fetched = !place.mirrors.urls.empty();
  if (sums.empty() && fetched) {
    throw UsageError(fmt::format("{}: data.mirrors needs data.sha256, with which what is "
                                 "downloaded is compared",
                                 reader.where("data.mirrors")),
                     "sha256sum prints it; one for each file, in the order of the file keys");
  }
  if (!sums.empty() && sums.size() != names.size()) {
    throw UsageError(fmt::format("{}: data.sha256 has {} checksums for {} file{}",
                                 reader.where("data.sha256"), sums.size(), names.size(),
                                 names.size() == 1 ? "" : "s"));
  }
  std::vector<DataFile> files;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if ((fetched || !place.copy_to.empty()) && names[i].find('/') != std::string::npos) {
      throw UsageError(fmt::format("{}: '{}' is no plain name, which a file that is downloaded or "
                                   "copied has",
                                   reader.where("data.path"), names[i]),
                       "name the folder in data.path");
    }
    files.push_back({{.name = names[i]}});
    if (sums.empty()) continue;
    if (!is_sha256(sums[i])) {
      throw UsageError(fmt::format("{}: data.sha256: '{}' is not 64 hexadecimal digits 0-9 a-f",
                                   reader.where("data.sha256"), sums[i]));
    }
    files.back().wanted.sha256 = sums[i];
  }
  return files;
}

FileSettings read_mnist(TomlReader& reader) {
  FileSettings settings;
  settings.place = read_place(reader, standard_mnist_folder(), mnist_mirrors());
  refuse_all(reader, {"data.sha256"}, "is not for data.source = \"mnist\", which knows its own");
  settings.files = mnist_files();
  settings.place.hint =
      "put train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
      "t10k-labels-idx1-ubyte there, plain or as .gz, name their folder in data.path or "
      "DTOOL_MNIST_DIR, or set data.download = true";
  return settings;
}

/// Those without a usual name are required.
FileSettings read_array_files(TomlReader& reader, const std::vector<std::string>& keys,
                              const std::vector<std::string>& usual) {
  FileSettings settings;
  settings.place = read_place(reader, ".", {});
  std::vector<std::string> names;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    names.push_back(usual.empty() ? required_text(reader, keys[i])
                                  : reader.text(keys[i], usual[i]));
  }
  settings.files = named_files(reader, names, settings.place);
  return settings;
}

char read_separator(TomlReader& reader) {
  const auto text = reader.text("data.separator", ",");
  const bool is_one = text.size() == 1 && static_cast<unsigned char>(text[0]) < 0x80;
  if (is_one && text.find_first_of("\"\r\n") == std::string::npos) return text[0];
  throw UsageError(
      fmt::format("{}: data.separator is one character that is neither a quote nor the "
                  "end of a line, not '{}'",
                  reader.where("data.separator"), text),
      "such as \",\", \";\" or \"\\t\"");
}

CsvSettings read_csv_keys(TomlReader& reader) {
  CsvSettings csv;
  csv.format.separator = read_separator(reader);
  csv.format.header = reader.boolean("data.header", true) ? Header::present : Header::absent;
  csv.inputs = reader.texts("data.inputs", {});
  csv.targets = reader.texts("data.targets", {});
  csv.standardise = reader.boolean("data.standardise", false) ? Standardise::yes : Standardise::no;
  return csv;
}

FileSettings read_csv(TomlReader& reader) {
  FileSettings settings;
  settings.place = read_place(reader, ".", {});
  settings.csv = read_csv_keys(reader);
  std::vector<std::string> names = {required_text(reader, "data.train_file")};
  if (const auto test = reader.text("data.test_file", ""); !test.empty()) {
    names.push_back(test);
    refuse_all(reader, {"data.test_share", "data.split_seed"},
               "does not go together with data.test_file");
  } else {
    settings.csv.test_share = reader.number("data.test_share", 0.1, {1e-9, 0.999999999});
    settings.csv.split_seed = static_cast<std::uint64_t>(
        reader.integer("data.split_seed", 0, {0, std::numeric_limits<std::int64_t>::max()}));
  }
  settings.files = named_files(reader, names, settings.place);
  return settings;
}

FileSettings read_file_settings(TomlReader& reader, DataSource source, TargetKind targets) {
  if (source != DataSource::npy) refuse_all(reader, kNpyKeys, "is only for data.source = \"npy\"");
  if (source != DataSource::idx) refuse_all(reader, kIdxKeys, "is only for data.source = \"idx\"");
  if (source != DataSource::csv) refuse_all(reader, kCsvKeys, "is only for data.source = \"csv\"");
  if (source == DataSource::mnist) return read_mnist(reader);
  if (source == DataSource::idx) return read_array_files(reader, kIdxKeys, {});
  if (source == DataSource::csv) return read_csv(reader);
  if (targets != TargetKind::none) {
    return read_array_files(reader, kNpyKeys,
                            {"x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy"});
  }
  refuse_all(reader, {kNpyKeys[1], kNpyKeys[3]}, "is not for a model whose target is its input");
  return read_array_files(reader, {kNpyKeys[0], kNpyKeys[2]}, {"x_train.npy", "x_test.npy"});
}

/// For data without files: refuses every key about them.
void refuse_file_settings(const TomlReader& reader) {
  for (const auto* keys : {&kPlaceKeys, &kIdxKeys, &kCsvKeys, &kNpyKeys}) {
    refuse_all(reader, *keys, "is only for data.source = \"mnist\", \"idx\", \"csv\" or \"npy\"");
  }
  refuse_all(reader, {"data.sha256"}, "is only for data.source = \"idx\", \"csv\" or \"npy\"");
}

void read_random(TomlReader& reader, DataSettings& data) {
  data.features = reader.integer("data.features", 10, {1, 1 << 24});
  data.random_targets =
      choose<RandomTargets>(reader, "data.random_targets",
                            {{"noise", RandomTargets::noise}, {"linear", RandomTargets::linear}});
  data.train_samples = reader.integer("data.train_samples", 10000, {1, 100'000'000});
  data.test_samples = reader.integer("data.test_samples", 0, {0, 100'000'000});
}

std::vector<Choice<DataSource>> sources_of(ModelKind kind) {
  std::vector<Choice<DataSource>> sources = {
      {"csv", DataSource::csv}, {"npy", DataSource::npy}, {"python", DataSource::python}};
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
  if (data.source != DataSource::python) {
    refuse_all(reader, {"data.iterator", "data.python"}, "is only for data.source = \"python\"");
  }
  const bool is_drawn = data.source == DataSource::digits || data.source == DataSource::random;
  if (!is_drawn) {
    refuse_all(reader, {"data.train_samples", "data.test_samples", "data.drawing_seed"},
               "is only for data that is drawn");
  }
  if (data.source == DataSource::digits) {
    data.train_samples = reader.integer("data.train_samples", 20000, {1, 10'000'000});
    data.test_samples = reader.integer("data.test_samples", 2000, {1, 10'000'000});
  } else if (data.source == DataSource::random) {
    read_random(reader, data);
  } else if (data.source == DataSource::python) {
    data.iterator = required_text(reader, "data.iterator");
    data.python = reader.text("data.python", "python3");
  } else {
    data.files = read_file_settings(reader, data.source, targets_of(model));
  }
  if (data.files.files.empty()) refuse_file_settings(reader);
  if (is_drawn) {
    data.drawing_seed =
        static_cast<std::uint64_t>(reader.integer("data.drawing_seed", 0, {0, kMany}));
  }
  data.files.targets = targets_of(model);
  data.prefetch = reader.integer_if_given("data.prefetch", {0, 1024});
  return data;
}

// The checksums are of the unpacked content: mirrors have compressed the files differently.

std::vector<DataFile> mnist_files() {
  const auto file = [](const char* name, const char* sha256, std::int64_t unpacked_bytes) {
    return DataFile{{name, sha256, Counted::content, unpacked_bytes},
                    Compared::when_others_are_missing};
  };
  return {file("train-images-idx3-ubyte.gz",
               "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db", 47040016),
          file("train-labels-idx1-ubyte.gz",
               "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", 60008),
          file("t10k-images-idx3-ubyte.gz",
               "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", 7840016),
          file("t10k-labels-idx1-ubyte.gz",
               "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", 10008)};
}

}  // namespace dtool::trainer

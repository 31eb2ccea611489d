// SPDX-License-Identifier: MIT
#include "cli/record/record.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "killfiles/strict_toml.h"
#include "killfiles/whole_file.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"

namespace dtool::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 1;
constexpr std::size_t kMostDiff = 1U << 20U;
constexpr int kDeepest = 8;
constexpr const char* kPackedDiff = "diff_zstd_base64";

/// JSON holds UTF-8 alone, but paths and arguments may be any bytes.
json with_all_bytes(json value) {
  if (value.is_string()) return killfiles::to_utf8(value.get<std::string>());
  if (value.is_structured()) {
    for (json& each : value) each = with_all_bytes(std::move(each));
  }
  return value;
}

json with_own_bytes(json value) {
  if (value.is_string()) return killfiles::from_toml(value.get<std::string>());
  if (value.is_structured()) {
    for (json& each : value) each = with_own_bytes(std::move(each));
  }
  return value;
}

// A record's values as JSON. A struct has the names that its fields() tells.

template <typename Struct>
concept HasNames = requires(Struct& each) {
  each.fields([](auto&&...) {});
};

template <typename Struct, typename Visit>
void visit_names(Struct& value, Visit visit) {
  value.fields([&visit](auto&&... each) {
    static_assert(host::has_fields<Struct, sizeof...(each)>, "fields() leaves out a field");
    (visit(each.row.name, each.value), ...);
  });
}

template <typename Value>
json json_of(const Value& value) {
  return value;
}

template <HasNames Struct>
json json_of(const Struct& value) {
  json document;
  // fields() also serves those who read; nothing is written here.
  visit_names(const_cast<Struct&>(value),
              [&](const char* name, const auto& each) { document[name] = json_of(each); });
  return document;
}

template <typename Value>
json json_of(const std::optional<Value>& value) {
  return value ? json_of(*value) : json(nullptr);
}

template <HasNames Struct>
json json_of(const std::vector<Struct>& values) {
  json list = json::array();
  for (const Struct& each : values) list.push_back(json_of(each));
  return list;
}

// And back. A key that is missing, as one that came later, leaves the value as it is.

template <typename Value>
void take(const json& from, const char* key, Value& value);

template <typename Value>
void take(const json& from, Value& value) {
  from.get_to(value);
}

template <HasNames Struct>
void take(const json& from, Struct& value) {
  visit_names(value, [&from](const char* name, auto& each) { take(from, name, each); });
}

template <typename Value>
void take(const json& from, std::optional<Value>& value) {
  if (!from.is_null()) take(from, value.emplace());
}

template <HasNames Struct>
void take(const json& from, std::vector<Struct>& values) {
  for (const json& each : from) take(each, values.emplace_back());
}

template <typename Value>
void take(const json& from, const char* key, Value& value) {
  if (const auto found = from.find(key); found != from.end()) take(*found, value);
}

json record_json(const RunRecord& record) {
  json document = to_json(static_cast<const killfiles::Run&>(record));
  RunRecord& fields = const_cast<RunRecord&>(record);  // nothing is written
  fields.own_fields(
      [&](auto&&... each) { ((document[each.row.name] = json_of(each.value)), ...); });
  return document;
}

std::string unpacked_diff(const std::string& packed) {
  const auto bytes = ssh::from_base64(packed);
  const auto diff = bytes ? unpack(*bytes, kMostDiff) : std::nullopt;
  if (!diff) throw std::runtime_error("its diff is damaged");
  return *diff;
}

RunRecord record_of(const json& from) {
  if (from.at("format").get<int>() != kFormat)
    throw std::runtime_error("it has another format, of a newer dtool");
  RunRecord record;
  visit_rows(record,
             [&from](const killfiles::Row& row, auto& value) { take(from, row.name, value); });
  refuse_faults(record, [](const char* name, const std::string& fault) {
    throw std::runtime_error(fmt::format("{}: {}", name, fault));
  });
  record.own_fields([&from](auto&&... each) { (take(from, each.row.name, each.value), ...); });
  record.code.diff.clear();  // in a file it is packed
  std::string packed;
  take(from.value("code", json::object()), kPackedDiff, packed);
  if (!packed.empty()) record.code.diff = unpacked_diff(packed);
  return record;
}

}  // namespace

std::string to_text(const RunRecord& record) {
  json document = with_all_bytes(record_json(record));
  document["format"] = kFormat;
  document["code"].erase("diff");
  if (!record.code.diff.empty())
    document["code"][kPackedDiff] = ssh::to_base64(pack(record.code.diff));
  return document.dump(1) + "\n";
}

RunRecord parse_record(std::string_view text, const std::string& name) {
  try {
    // A host may have written it: what is nested deeper is left out.
    const auto is_shallow = [](int depth, json::parse_event_t, json&) { return depth <= kDeepest; };
    return record_of(with_own_bytes(json::parse(text, is_shallow)));
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("{} is no record of a run: {}", name, error.what()));
  }
}

nlohmann::json to_json(const RunRecord& record) {
  json document = record_json(record);
  document["is_recorded"] = !record.is_of_killfile;
  return document;
}

nlohmann::json to_json(const killfiles::Run& run) {
  json document;
  visit_rows(run, [&document](const killfiles::Row& row, const auto& value) {
    document[row.name] = json_of(value);
  });
  return document;
}

nlohmann::json to_json(const killfiles::Killfile& killfile) {
  json document;
  visit_rows(killfile, [&document](const killfiles::Row& row, const auto& value) {
    if (row.in_killfile != killfiles::Kept::no) document[row.name] = json_of(value);
  });
  return document;
}

RunRecord record_of(const killfiles::Killfile& killfile) {
  RunRecord record;
  static_cast<killfiles::Run&>(record) = killfile;
  record.is_of_killfile = true;
  for (const killfiles::Machine& each : killfile.machines) {
    RecordedMachine& machine = record.machines.emplace_back();
    machine.id = each.id;
    machine.host = each.host;
    machine.identity = each.identity;
    machine.output_folder = each.output_folder;
  }
  if (!record.machines.empty()) {
    record.machines.front().code_folder = killfile.code_path;
    record.machines.front().processes = killfile.nproc_per_node;
  }
  return record;
}

namespace {

constexpr int kLevel = 9;  // a diff of 1 MiB takes 30 ms

}  // namespace

std::string pack(std::string_view text) {
  std::string bytes(::ZSTD_compressBound(text.size()), '\0');
  const std::size_t size =
      ::ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), kLevel);
  if (::ZSTD_isError(size) != 0)
    throw std::runtime_error(fmt::format("zstd: {}", ::ZSTD_getErrorName(size)));
  bytes.resize(size);
  return bytes;
}

std::optional<std::string> unpack(std::string_view bytes, std::size_t most) {
  const auto size = ::ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > most)
    return std::nullopt;
  std::string text(size, '\0');
  const std::size_t read = ::ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  if (::ZSTD_isError(read) != 0 || read != text.size()) return std::nullopt;
  return text;
}

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostListing = 1U << 30U;
constexpr std::size_t kKept = 1000;

fs::path listing_path(const std::string& run_id) {
  return record_folder() / (run_id + ".listing");
}

void delete_oldest() {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code fault;
  for (const auto& each : fs::directory_iterator(record_folder(), fault)) {
    if (each.path().extension() == ".json") files.emplace_back(each.last_write_time(fault), each);
  }
  if (files.size() <= kKept) return;
  std::ranges::sort(files);
  files.resize(files.size() - kKept);
  for (const auto& [time, file] : files) {
    fs::remove(file, fault);
    fs::remove(fs::path(file).replace_extension(".listing"), fault);
  }
}

}  // namespace

fs::path record_folder() {
  return ssh::home_folder() / ".dtool" / "records";
}

fs::path record_path(const std::string& run_id) {
  return record_folder() / (run_id + ".json");
}

std::vector<std::string> recorded_ids() {
  std::vector<std::string> ids;
  std::error_code fault;
  for (const auto& each : fs::directory_iterator(record_folder(), fault))
    if (each.path().extension() == ".json") ids.push_back(each.path().stem());
  return ids;
}

void write_record(const RunRecord& record) {
  killfiles::write_whole(record_path(record.run_id), to_text(record));
  delete_oldest();
}

std::optional<RunRecord> find_record(const std::string& run_id) {
  const fs::path file = record_path(run_id);
  try {
    return parse_record(killfiles::read_whole(file), file.string());
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::no_such_file_or_directory) return std::nullopt;
    throw;
  }
}

void forget_record(const std::string& run_id) {
  std::error_code fault;
  fs::remove(record_path(run_id), fault);
  fs::remove(listing_path(run_id), fault);
}

void write_listing(const std::string& run_id, std::string_view text) {
  killfiles::write_whole(listing_path(run_id), pack(text));
}

std::optional<std::string> read_listing(const std::string& run_id) {
  try {
    return unpack(killfiles::read_whole(listing_path(run_id)), kMostListing);
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace dtool::cli

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

json identity_json(const killfiles::HostIdentity& identity) {
  return {{"name", identity.name},
          {"machine_id", identity.machine_id},
          {"boot_id", identity.boot_id},
          {"process_namespace", identity.process_namespace},
          {"host_key", identity.host_key}};
}

json machine_json(const RecordedMachine& machine) {
  return {{"id", machine.id},
          {"host", machine.host},
          {"identity", identity_json(machine.identity)},
          {"code_folder", machine.code_folder},
          {"tree", machine.tree},
          {"output_folder", machine.output_folder},
          {"processes", machine.processes},
          {"threads", machine.threads},
          {"cores", machine.cores},
          {"memory_bytes", machine.memory},
          {"gpus", machine.gpus},
          {"driver", machine.driver},
          {"trainer", machine.trainer}};
}

/// to_text and to_json add the diff, each in its form.
json code_json(const RecordedCode& code) {
  return {{"folder", code.folder},
          {"fingerprint", code.fingerprint},
          {"files", code.files},
          {"commit", code.commit},
          {"branch", code.branch},
          {"is_dirty", code.is_dirty},
          {"deleted", code.deleted},
          {"untracked", code.untracked},
          {"diff_left_out", code.diff_left_out}};
}

json end_json(const RecordedEnd& end) {
  return {{"at", end.at},
          {"state", end.state},
          {"exit_code", end.exit_code},
          {"attempts", end.attempts},
          {"cause", end.cause},
          {"metrics", end.metrics},
          {"validation", end.validation}};
}

json forgotten_json(const RecordedForgetting& forgotten) {
  return {{"at", forgotten.at}, {"left_on", forgotten.left_on}};
}

json record_json(const RunRecord& record) {
  json machines = json::array();
  for (const RecordedMachine& each : record.machines) machines.push_back(machine_json(each));
  return {{"run_id", record.run_id},
          {"created", record.created},
          {"launcher", record.launcher},
          {"command_line", record.command_line},
          {"chain", record.chain},
          {"rerun_of", record.rerun_of},
          {"flags", record.flags ? json(*record.flags) : json(nullptr)},
          {"what", record.what},
          {"engine", record.engine},
          {"experiment", record.experiment},
          {"program", record.program},
          {"seed", record.seed},
          {"variables", record.variables},
          {"environment", record.environment},
          {"output_dir", record.output_dir},
          {"gpus", record.gpus},
          {"distributed_ip_and_port", record.listener},
          {"on_failure", record.on_failure},
          {"max_restarts", record.max_restarts},
          {"dtool_version", record.dtool_version},
          {"code", code_json(record.code)},
          {"machines", std::move(machines)},
          {"packages", record.packages},
          {"end", record.end ? end_json(*record.end) : json(nullptr)},
          {"forgotten", record.forgotten ? forgotten_json(*record.forgotten) : json(nullptr)}};
}

/// A key that is missing, as one that came later, leaves the value as it is.
template <typename Value>
void take(const json& from, const char* key, Value& value) {
  if (const auto found = from.find(key); found != from.end()) found->get_to(value);
}

RecordedMachine machine_of(const json& from) {
  RecordedMachine machine;
  take(from, "id", machine.id);
  take(from, "host", machine.host);
  const json identity = from.value("identity", json::object());
  take(identity, "name", machine.identity.name);
  take(identity, "machine_id", machine.identity.machine_id);
  take(identity, "boot_id", machine.identity.boot_id);
  take(identity, "process_namespace", machine.identity.process_namespace);
  take(identity, "host_key", machine.identity.host_key);
  take(from, "code_folder", machine.code_folder);
  take(from, "tree", machine.tree);
  take(from, "output_folder", machine.output_folder);
  take(from, "processes", machine.processes);
  take(from, "threads", machine.threads);
  take(from, "cores", machine.cores);
  take(from, "memory_bytes", machine.memory);
  take(from, "gpus", machine.gpus);
  take(from, "driver", machine.driver);
  take(from, "trainer", machine.trainer);
  return machine;
}

RecordedCode code_of(const json& from) {
  RecordedCode code;
  take(from, "folder", code.folder);
  take(from, "fingerprint", code.fingerprint);
  take(from, "files", code.files);
  take(from, "commit", code.commit);
  take(from, "branch", code.branch);
  take(from, "is_dirty", code.is_dirty);
  take(from, "deleted", code.deleted);
  take(from, "untracked", code.untracked);
  take(from, "diff_left_out", code.diff_left_out);
  std::string packed;
  take(from, "diff_zstd_base64", packed);
  if (packed.empty()) return code;
  const auto bytes = ssh::from_base64(packed);
  const auto diff = bytes ? unpack(*bytes, kMostDiff) : std::nullopt;
  if (!diff) throw std::runtime_error("its diff is damaged");
  code.diff = *diff;
  return code;
}

RecordedEnd end_of(const json& from) {
  RecordedEnd end;
  take(from, "at", end.at);
  take(from, "state", end.state);
  take(from, "exit_code", end.exit_code);
  take(from, "attempts", end.attempts);
  take(from, "cause", end.cause);
  take(from, "metrics", end.metrics);
  take(from, "validation", end.validation);
  return end;
}

RunRecord record_of(const json& from) {
  if (from.at("format").get<int>() != kFormat)
    throw std::runtime_error("it has another format, of a newer dtool");
  RunRecord record;
  from.at("run_id").get_to(record.run_id);
  if (!killfiles::is_run_id(record.run_id)) throw std::runtime_error("its run id is none");
  take(from, "created", record.created);
  take(from, "launcher", record.launcher);
  take(from, "command_line", record.command_line);
  take(from, "chain", record.chain);
  if (!std::ranges::all_of(record.chain, killfiles::is_run_id))
    throw std::runtime_error("it goes on from what is no run");
  take(from, "rerun_of", record.rerun_of);
  if (!record.rerun_of.empty() && !killfiles::is_run_id(record.rerun_of))
    throw std::runtime_error("it repeats what is no run");
  if (const auto flags = from.find("flags"); flags != from.end() && !flags->is_null())
    flags->get_to(record.flags.emplace());
  take(from, "what", record.what);
  take(from, "engine", record.engine);
  take(from, "experiment", record.experiment);
  take(from, "program", record.program);
  take(from, "seed", record.seed);
  take(from, "variables", record.variables);
  take(from, "environment", record.environment);
  take(from, "output_dir", record.output_dir);
  take(from, "gpus", record.gpus);
  take(from, "distributed_ip_and_port", record.listener);
  take(from, "on_failure", record.on_failure);
  take(from, "max_restarts", record.max_restarts);
  take(from, "dtool_version", record.dtool_version);
  take(from, "packages", record.packages);
  record.code = code_of(from.value("code", json::object()));
  for (const json& each : from.value("machines", json::array()))
    record.machines.push_back(machine_of(each));
  const json end = from.value("end", json(nullptr));
  if (!end.is_null()) record.end = end_of(end);
  const json forgotten = from.value("forgotten", json(nullptr));
  if (!forgotten.is_null()) {
    RecordedForgetting& told = record.forgotten.emplace();
    take(forgotten, "at", told.at);
    take(forgotten, "left_on", told.left_on);
  }
  return record;
}

}  // namespace

std::string to_text(const RunRecord& record) {
  json document = with_all_bytes(record_json(record));
  document["format"] = kFormat;
  if (!record.code.diff.empty())
    document["code"]["diff_zstd_base64"] = ssh::to_base64(pack(record.code.diff));
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
  document["code"]["diff"] = record.code.diff;
  document["is_recorded"] = !record.is_of_killfile;
  return document;
}

RunRecord record_of(const killfiles::Killfile& killfile) {
  RunRecord record;
  record.is_of_killfile = true;
  record.run_id = killfile.run_id;
  record.created = killfile.created;
  record.launcher = killfile.launcher;
  record.command_line = killfile.command_line;
  record.chain = killfile.chain;
  record.rerun_of = killfile.rerun_of;
  record.what = killfile.what;
  record.engine = killfile.launched_by;
  record.seed = killfile.seed.value_or(0);
  record.listener = killfile.distributed_ip_and_port;
  record.on_failure = killfile.on_failure;
  record.max_restarts = killfile.max_restarts;
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

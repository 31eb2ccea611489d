// SPDX-License-Identifier: MIT
#include "cli/record/record_files.h"

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/record/packed_text.h"
#include "killfiles/whole_file.h"
#include "ssh/machine/base64.h"
#include "ssh/machine/home_folder.h"

namespace dtool::cli {
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

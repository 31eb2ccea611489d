// SPDX-License-Identifier: MIT
// The files of records: ~/.dtool/records/RUN.json is the record, and RUN.listing the list of the
// files of the code that was sent.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cli/record/record.h"

namespace dtool::cli {

std::filesystem::path record_folder();
std::filesystem::path record_path(const std::string& run_id);

/// Writes it durably (temporary file, fsync, rename), and deletes all but the newest 1,000. Throws
/// std::system_error.
void write_record(const RunRecord& record);

/// Nothing if there is none. Throws std::runtime_error if it cannot be read.
std::optional<RunRecord> find_record(const std::string& run_id);

/// Deletes it and its listing, since nothing was started.
void forget_record(const std::string& run_id);

/// Keeps the text of the code's listing (sync/listing.h), compressed. Throws std::system_error.
void write_listing(const std::string& run_id, std::string_view text);
/// Nothing if none was kept, or if it is damaged.
std::optional<std::string> read_listing(const std::string& run_id);

}  // namespace dtool::cli

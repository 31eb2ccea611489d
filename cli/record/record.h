// SPDX-License-Identifier: MIT
// The record of a run: what ran, where, from which code, and how it ended. `dtool run` writes it
// before the killfile; it stays when the run is forgotten, and needs no checkout. docs/daily.md
// says what it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "killfiles/killfile.h"

namespace dtool::cli {

/// A value with its name in a record.
template <typename Value>
killfiles::Cell<Value> named(const char* name, Value& value) {
  return {{name}, value};
}

/// One machine's part. Paths are on the host.
struct RecordedMachine {
  int id = 0;
  std::string host;                  ///< the text that --runs_on takes
  killfiles::HostIdentity identity;  ///< unknown if a scheduler chose the host
  std::string code_folder;
  std::string tree;  ///< the run's own copy of the code; empty: it ran in the code folder
  std::string output_folder;
  int processes = 0;
  int threads = 0;  ///< the threads of each process (OMP_NUM_THREADS); 0: dtool did not choose
  std::int64_t cores = 0;   ///< 0: not known
  std::int64_t memory = 0;  ///< bytes
  std::vector<std::string> gpus;
  std::string driver;
  std::string trainer;  ///< the first line of its --version; empty: a program ran

  void fields(auto visit) {
    visit(named("id", id), named("host", host), named("identity", identity),
          named("code_folder", code_folder), named("tree", tree),
          named("output_folder", output_folder), named("processes", processes),
          named("threads", threads), named("cores", cores), named("memory_bytes", memory),
          named("gpus", gpus), named("driver", driver), named("trainer", trainer));
  }
};

/// The code that was sent.
struct RecordedCode {
  std::string folder;  ///< the folder on the launcher; empty: no code was sent
  std::string fingerprint;
  std::size_t files = 0;
  std::string commit;  ///< empty: no checkout, or git did not answer
  std::string branch;  ///< empty: none is checked out
  bool is_dirty = false;
  std::string diff;                    ///< the changes since the commit, as `git apply` takes them
  std::string diff_left_out;           ///< why there is no diff of a dirty tree; or empty
  std::vector<std::string> deleted;    ///< files of the commit that were deleted: only their names
  std::vector<std::string> untracked;  ///< files that git does not know

  void fields(auto visit) {
    visit(named("folder", folder), named("fingerprint", fingerprint), named("files", files),
          named("commit", commit), named("branch", branch), named("is_dirty", is_dirty),
          named("diff", diff), named("diff_left_out", diff_left_out), named("deleted", deleted),
          named("untracked", untracked));
  }
};

/// How a run ended.
struct RecordedEnd {
  std::string at;     ///< UTC, in a killfile's form
  std::string state;  ///< `ended`, `killed`, `1 of 2 failed, 1 stopped`
  int exit_code = 0;  ///< the exit code of `dtool status`
  int attempts = 1;
  std::string cause;                    ///< the reason why the run failed; or empty
  nlohmann::json metrics = nullptr;     ///< the last line of training; or null
  nlohmann::json validation = nullptr;  ///< the last line of validation; or null

  void fields(auto visit) {
    visit(named("at", at), named("state", state), named("exit_code", exit_code),
          named("attempts", attempts), named("cause", cause), named("metrics", metrics),
          named("validation", validation));
  }
};

/// That the killfile was deleted.
struct RecordedForgetting {
  std::string at;       ///< UTC, in a killfile's form
  std::string left_on;  ///< hosts on which something may have been left; empty: nothing was left

  void fields(auto visit) { visit(named("at", at), named("left_on", left_on)); }
};

struct RunRecord : killfiles::Run {
  /// The flags as typed, without those that only one command is about, and without exports that
  /// have a value; with those of the runs that it goes on from. Nothing: an older dtool wrote the
  /// record.
  std::optional<std::map<std::string, std::vector<std::string>>> flags;
  std::vector<std::string> variables;                     ///< names of what was exported
  nlohmann::json environment = nlohmann::json::object();  ///< to_json(Environment)
  std::string dtool_version;
  RecordedCode code;
  std::vector<RecordedMachine> machines;
  std::string packages;  ///< python's version and the packages, a line each; empty: not known
  nlohmann::json simulator = nullptr;  ///< environments of others: their package, version, ...
  std::optional<RecordedEnd> end;
  std::optional<RecordedForgetting> forgotten;  ///< nothing: not yet, or by an older dtool
  /// What the machines said when they were asked and had not all ended; empty: not asked. It is not
  /// kept.
  std::string state_now;
  bool is_state_known = true;   ///< every machine answered then; not kept either
  bool is_of_killfile = false;  ///< made from a killfile: an older dtool wrote no record

  /// Those that are kept beside the run's.
  void own_fields(auto visit) {
    visit(named("flags", flags), named("variables", variables), named("environment", environment),
          named("dtool_version", dtool_version), named("code", code), named("machines", machines),
          named("packages", packages), named("simulator", simulator), named("end", end),
          named("forgotten", forgotten));
  }
};

/// The record's text and back. parse_record throws std::runtime_error that names `name` if the text
/// is no record.
std::string to_text(const RunRecord& record);
RunRecord parse_record(std::string_view text, const std::string& name);

/// For people and programs: the diff and all names as text; bytes that are no UTF-8 are replaced.
nlohmann::json to_json(const RunRecord& record);

/// The run alone: all its fields, by their names in a record.
nlohmann::json to_json(const killfiles::Run& run);
/// The same of those that killfiles have.
nlohmann::json to_json(const killfiles::Killfile& killfile);

/// The parts that a killfile has, too.
RunRecord record_of(const killfiles::Killfile& killfile);

// Text that is kept small: compressed by zstd.

std::string pack(std::string_view text);
/// Nothing if the bytes are damaged, or hold more than `most` bytes.
std::optional<std::string> unpack(std::string_view bytes, std::size_t most);

// The files of records: ~/.dtool/records/RUN.json is the record, and RUN.listing the list of the
// files of the code that was sent.

std::filesystem::path record_folder();
std::filesystem::path record_path(const std::string& run_id);

/// Writes it durably (temporary file, fsync, rename), and deletes all but the newest 1,000. Throws
/// std::system_error.
void write_record(const RunRecord& record);

/// The ids of all runs that have a record, in no order.
std::vector<std::string> recorded_ids();

/// Nothing if there is none. Throws std::runtime_error if it cannot be read.
std::optional<RunRecord> find_record(const std::string& run_id);

/// Deletes it and its listing, since nothing was started.
void forget_record(const std::string& run_id);

/// Keeps the text of the code's listing (sync/listing.h), compressed. Throws std::system_error.
void write_listing(const std::string& run_id, std::string_view text);
/// Nothing if none was kept, or if it is damaged.
std::optional<std::string> read_listing(const std::string& run_id);

}  // namespace dtool::cli

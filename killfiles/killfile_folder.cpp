// SPDX-License-Identifier: MIT
// Killfiles on disk: in the folder where runs are recorded, or any file that a user names.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "killfiles/killfile.h"
#include "killfiles/nearest.h"
#include "killfiles/whole_file.h"

namespace dtool::killfiles {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".killfile";

// The first line with content decides. In AllenAct's form it is two words; a TOML comment, header
// or pair never is.
bool is_allenact(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string host, session, more;
    if (!(words >> host)) continue;
    return words >> session && !(words >> more) && line.find_first_of("=#\"") == std::string::npos;
  }
  return false;
}

std::string time_of_file(const fs::path& file) {
  struct stat status = {};
  if (stat(file.c_str(), &status) != 0) return "";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(status.st_mtime));
}

Listed read_listed(const fs::path& file) {
  Listed listed = {file, std::nullopt, ""};
  try {
    listed.killfile = read(file);
  } catch (const std::invalid_argument& fault) {
    listed.error = fault.what();
  }
  return listed;
}

std::string name_of(const Listed& listed) {
  const bool has_id = listed.killfile && !listed.killfile->run_id.empty();
  return has_id ? listed.killfile->run_id : listed.file.stem().string();
}

std::string join_names(const std::vector<Listed>& runs) {
  constexpr std::size_t kMost = 10;
  std::string names;
  for (std::size_t i = 0; i < std::min(runs.size(), kMost); ++i) {
    names += (i == 0 ? "" : ", ") + name_of(runs[i]);
  }
  if (runs.size() > kMost) names += fmt::format(" and {} more", runs.size() - kMost);
  return names;
}

// The only element of `runs`; nothing if there are none.
std::optional<Listed> require_one(std::vector<Listed> runs, std::string_view wanted) {
  if (runs.empty()) return std::nullopt;
  if (runs.size() == 1) return std::move(runs.front());
  if (name_of(runs[0]) == wanted) {
    throw std::invalid_argument(fmt::format("run '{}' is recorded twice: {} and {}", wanted,
                                            runs[0].file.string(), runs[1].file.string()));
  }
  throw std::invalid_argument(
      fmt::format("'{}' {} of {} runs: {}\nhint: give more of the id of the one you mean", wanted,
                  name_of(runs[0]).starts_with(wanted) ? "begins the id" : "is part of the ids",
                  runs.size(), join_names(runs)));
}

// A launcher that was killed while writing leaves a temporary file, and no run was started from it.
void remove_old_halves(const fs::path& folder) {
  const auto day_ago = fs::file_time_type::clock::now() - std::chrono::hours(24);
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool is_half =
        name.starts_with('.') && name.find(fmt::format("{}.", kExtension)) != name.npos;
    std::error_code ignored;
    if (is_half && fs::last_write_time(entry->path(), ignored) < day_ago && !ignored)
      fs::remove(entry->path(), ignored);
  }
}

}  // namespace

Killfile read(const fs::path& file) {
  std::string text;
  try {
    text = read_whole(file);
  } catch (const std::system_error& fault) {
    throw std::invalid_argument(fault.what());
  }
  return is_allenact(text) ? parse_allenact(text, file.string()) : parse(text, file.string());
}

fs::path path_of(const fs::path& folder, std::string_view run_id) {
  if (!is_run_id(run_id)) throw std::invalid_argument(fmt::format("'{}' is no run id", run_id));
  return folder / fmt::format("{}{}", run_id, kExtension);
}

fs::path write(const fs::path& folder, const Killfile& killfile) {
  const fs::path file = path_of(folder, killfile.run_id);
  const bool is_new = !fs::exists(file);
  try {
    write_whole(file, to_text(killfile));
  } catch (const std::system_error&) {
    // It may have its name already, where only the folder could not be flushed.
    std::error_code ignored;
    if (is_new) fs::remove(file, ignored);
    throw;
  }
  remove_old_halves(folder);
  return file;
}

std::vector<Listed> list(const fs::path& folder) {
  struct Dated {
    std::string time;
    fs::file_time_type written;  // orders runs that were started in the same second
    Listed listed;
  };
  std::error_code error;
  std::vector<Dated> dated;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& file = entry->path();
    // Names that begin with a dot are temporary files.
    if (file.extension() != kExtension || file.filename().string().starts_with('.')) continue;
    Listed listed = read_listed(file);
    // Another dtool kill may have deleted it meanwhile.
    std::error_code unknown;
    if (!listed.killfile && !fs::exists(fs::symlink_status(file, unknown))) continue;
    const bool is_dated = listed.killfile && !listed.killfile->created.empty();
    std::string time = is_dated ? listed.killfile->created : time_of_file(file);
    std::error_code ignored;
    const auto written = fs::last_write_time(file, ignored);
    dated.push_back({std::move(time), written, std::move(listed)});
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw std::system_error(error, folder.string() + ": cannot be read");
  }
  std::ranges::sort(dated, [](const Dated& a, const Dated& b) {
    return std::tie(a.time, a.written, a.listed.file) > std::tie(b.time, b.written, b.listed.file);
  });
  std::vector<Listed> runs;
  for (Dated& run : dated) runs.push_back(std::move(run.listed));
  return runs;
}

std::vector<Listed> without_set_ups(const std::vector<Listed>& all) {
  std::vector<Listed> runs;
  std::ranges::copy_if(all, std::back_inserter(runs), [](const Listed& each) {
    return !each.killfile || each.killfile->kind != RunKind::config;
  });
  return runs.empty() ? all : runs;
}

Meant runs_meant(const std::vector<std::string>& newest_first, std::string_view text) {
  constexpr std::size_t kTime = 23;  // the length of `_20261121-034512-3fa91c`
  if (text.starts_with('@'))
    throw NoSuchRun(fmt::format(
        "'{}' is a group of hosts, and a run is wanted\nhint: dtool list shows the runs", text));
  const auto all_of = [&newest_first](const auto& is_meant) {
    std::vector<std::string> ids;
    std::ranges::copy_if(newest_first, std::back_inserter(ids), is_meant);
    return ids;
  };
  if (auto same = all_of([&](const std::string& id) { return id == text; }); !same.empty())
    return {std::move(same)};
  for (std::size_t i = 0; i < newest_first.size() && text.starts_with("last"); ++i)
    if (text == (i == 0 ? "last" : fmt::format("last-{}", i))) return {{newest_first[i]}};
  auto begun = all_of([&](const std::string& id) { return id.starts_with(text); });
  const std::string tag = fmt::format("_{}", text);
  auto tagged = all_of([&](const std::string& id) {
    return id.size() > kTime && id.substr(0, id.size() - kTime).ends_with(tag);
  });
  if (begun.empty() && !tagged.empty()) return {std::move(tagged), true};
  const bool is_name = std::ranges::all_of(
      begun, [&](const std::string& id) { return id.size() == text.size() + kTime; });
  if (!begun.empty()) return {std::move(begun), is_name};
  return {all_of([&](const std::string& id) { return id.find(text) != id.npos; }), false, true};
}

Listed find(const fs::path& folder, std::string_view text, const Narrow& narrow,
            const std::function<void(std::string_view)>& told, Parts parts) {
  if (text.empty()) throw std::invalid_argument("the run id is empty");
  const std::vector<Listed> runs = list(folder);
  std::vector<std::string> names;
  for (const Listed& run : text.starts_with("last") ? without_set_ups(runs) : runs)
    names.push_back(name_of(run));
  Meant meant_runs = runs_meant(names, text);
  std::vector<std::string> with_part;
  if (meant_runs.is_part && parts == Parts::do_not_count) with_part.swap(meant_runs.ids);
  std::vector<Listed> found;
  for (const Listed& run : runs) {
    if (std::ranges::count(meant_runs.ids, name_of(run)) > 0) found.push_back(run);
  }
  bool takes_newest = meant_runs.is_tag;
  if (narrow && found.size() > 1) {
    std::vector<Listed> narrowed = narrow(found);
    takes_newest = takes_newest && narrowed.empty();
    if (!narrowed.empty()) found = std::move(narrowed);
  }
  if (takes_newest && found.size() > 1) {
    if (told)
      told(fmt::format("{} runs fit {}: this is the newest, {}", found.size(), text,
                       name_of(found.front())));
    return found.front();
  }
  if (std::optional<Listed> run = require_one(std::move(found), text)) return *run;
  const auto meant =
      with_part.size() == 1 ? std::optional(with_part.front()) : nearest_beginning(text, names);
  const std::string hint = meant          ? fmt::format("\nhint: did you mean {}?", *meant)
                           : runs.empty() ? "\nhint: dtool run starts one"
                                          : "\nhint: these runs are recorded: " + join_names(runs);
  throw NoSuchRun(fmt::format("no run '{}' is recorded in {}{}", text, folder.string(), hint));
}

// AllenAct's killfiles, `~/.allenact/*.killfile`, which its dmain.py writes line by line while it
// starts machines.

Killfile parse_allenact(std::string_view text, const std::string& name) {
  Killfile killfile;
  assume_older(killfile);
  killfile.what = "allenact";
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    ++number;
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) {
      // `screen -S` takes any session whose name begins with its argument, so a truncated name must
      // not reach it.
      throw std::invalid_argument(
          fmt::format("{}:{}: the line has no end\nhint: the file was cut short; add the line end "
                      "if its last name is whole",
                      name, number));
    }
    std::istringstream words(std::string(text.substr(begin, end - begin)));
    begin = end + 1;
    Machine machine;
    std::string more;
    if (!(words >> machine.host)) continue;
    if (!(words >> machine.session) || words >> more) {
      throw std::invalid_argument(
          fmt::format("{}:{}: the line is not of the form 'IP screen_name'", name, number));
    }
    machine.id = static_cast<int>(killfile.machines.size());
    killfile.machines.push_back(std::move(machine));
  }
  if (killfile.machines.empty()) {
    throw std::invalid_argument(fmt::format("{}:1: no machine is named", name));
  }
  return killfile;
}

}  // namespace dtool::killfiles

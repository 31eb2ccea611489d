// SPDX-License-Identifier: MIT
#include "cli/copy/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/action.h"
#include "cli/copy/copy_to_hosts.h"
#include "killfiles/nearest.h"
#include "ssh/machine/home_folder.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

/// The same place there.
std::string place_there(const std::string& source) {
  const fs::path path = fs::absolute(source).lexically_normal();
  const fs::path below = path.lexically_relative(ssh::home_folder());
  const bool is_below_home = !below.empty() && *below.begin() != "..";
  return is_below_home ? "~/" + below.native() : path.native();
}

}  // namespace

DataPlace place_of_data(const std::string& text) {
  const std::size_t colon = text.find(':');
  std::string source = path_here(text.substr(0, colon));
  while (source.size() > 1 && source.ends_with('/')) source.pop_back();
  std::string there = colon == text.npos ? "" : text.substr(colon + 1);
  if (source.empty() || (colon != text.npos && there.empty()) || there.find(':') != there.npos)
    throw UsageError(fmt::format("--data {}: it is not SRC or SRC:DST", text),
                     "a path with a colon can be copied before: dtool copy");
  std::error_code unseen;
  if (!fs::exists(source, unseen))
    throw UsageError(fmt::format("--data {}: there is no {}", text, source),
                     killfiles::nearest_file(source));
  if (there.empty()) there = place_there(source);
  if (fs::is_directory(source)) return {source + "/", folder_on_hosts(there)};
  const fs::path file = there;
  if (file.filename() != fs::path(source).filename())
    throw UsageError(fmt::format("--data {}: a file keeps its name, and {} is another one", text,
                                 file.filename().native()),
                     fmt::format("--data {}:{}", source,
                                 (file.parent_path() / fs::path(source).filename()).native()));
  const std::string folder = file.parent_path();
  return {source, folder_on_hosts(folder.empty() ? "~" : folder)};
}

std::string data_to_record(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const fs::path source = fs::absolute(path_here(text.substr(0, colon))).lexically_normal();
  return source.native() + text.substr(colon);
}

void leave_out_gone(Console& console, std::vector<std::string>& texts) {
  std::erase_if(texts, [&console](const std::string& text) {
    std::error_code unseen;
    const std::string source = path_here(text.substr(0, text.find(':')));
    if (fs::exists(source, unseen)) return false;
    console.note(
        fmt::format("--data {}: {} is gone here, and what the hosts have is used", text, source));
    return true;
  });
}

std::vector<RunData> list_data(Console& console, const std::vector<std::string>& texts) {
  std::vector<RunData> data;
  for (const std::string& text : texts) {
    const DataPlace place = place_of_data(text);
    data.push_back({list_to_copy(console, {place.source}, {}), place.folder});
  }
  return data;
}

bool supply_data(Console& console, ssh::Remote& remote, std::vector<RunData>& data,
                 tree_sync::Foreign foreign) {
  for (RunData& each : data)
    if (copy_to_hosts(console, remote, each.list, each.folder, foreign).exit_code != kAllWell)
      return false;
  return true;
}

}  // namespace dtool::cli

// SPDX-License-Identifier: MIT
#include "cli/record/new_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <chrono>
#include <ctime>
#include <exception>

#include "cli/console.h"
#include "ssh/host_request.h"
#include "ssh/machine/random_hex.h"
#include "ssh/wire/tree.h"

namespace dtool::cli {
namespace {

std::tm utc() {
  return fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
}

std::string user_and_host() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const passwd* entry = ::getpwuid(::getuid());
  return fmt::format("{}@{}", entry != nullptr ? entry->pw_name : "?", host.data());
}

}  // namespace

std::string make_run_id(const std::string& name) {
  std::string safe;
  for (const char each : name) {
    const bool is_harmless =
        std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '-' || each == '.';
    safe += is_harmless ? each : '_';
  }
  constexpr std::size_t kLongest =
      40;  // a screen session's name has a limit, and the id stands in it
  safe = safe.substr(0, kLongest);
  const std::size_t begin = safe.find_first_not_of("._-");
  safe = begin == safe.npos ? "run" : safe.substr(begin);
  return fmt::format("{}_{:%Y%m%d-%H%M%S}-{}", safe, utc(), ssh::random_hex(3));
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc());
}

killfiles::Killfile new_killfile(const std::string& run_id,
                                 const std::vector<std::string>& command_line) {
  killfiles::Killfile killfile;
  killfile.run_id = run_id;
  killfile.created = utc_now();
  killfile.launcher = user_and_host();
  killfile.command_line = command_line;
  return killfile;
}

void discard_run_folders(ssh::Remote& remote, const std::string& run_id) {
  if (remote.interrupted()) return;
  std::vector<ssh::Task> tasks;
  for (std::size_t i = 0; i < remote.hosts().size(); ++i)
    tasks.push_back({i, ssh::ask_host(host::RemoveRequest{run_id})});
  ssh::Events nobody;
  ssh::RunOptions options;
  options.timeout = std::chrono::seconds(30);  // a host that did not answer before may not now
  remote.run(std::move(tasks), nobody, options);
}

std::optional<killfiles::Killfile> write_or_discard(
    Console& console, ssh::Remote& remote, const std::string& run_id,
    const std::function<killfiles::Killfile()>& write) {
  try {
    return write();
  } catch (const std::exception& error) {
    console.fail(error);
    discard_run_folders(remote, run_id);
    console.note("nothing was started, since it could not be recorded");
    return std::nullopt;
  }
}

}  // namespace dtool::cli

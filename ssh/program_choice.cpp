#include "ssh/program_choice.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <string>

#include "ssh/home_folder.h"

namespace dtool::ssh {

Endpoint resolve_way(const ClientConfig& config, const Host& host) {
  Endpoint endpoint = config.resolve(host);
  for (const std::string& jump : endpoint.jumps) {
    if (!endpoint.needs_program.empty()) break;
    const std::string need = config.resolve_jump(parse_host(jump)).needs_program;
    if (!need.empty()) endpoint.needs_program = fmt::format("{} for jump host {}", need, jump);
  }
  return endpoint;
}

bool may_have_master(const Endpoint& endpoint) {
  if (endpoint.control_path.empty()) return false;
  std::string pattern;
  const std::string path = from_home(endpoint.control_path).string();
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '%') {
      pattern += '*';
      ++i;
    } else if (path[i] == '$' && i + 1 < path.size() && path[i + 1] == '{') {
      pattern += '*';
      while (i < path.size() && path[i] != '}') ++i;
    } else {
      if (path[i] == '*' || path[i] == '?' || path[i] == '[' || path[i] == '\\') pattern += '\\';
      pattern += path[i];
    }
  }
  glob_t found = {};
  bool is_there = false;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc && !is_there; ++i) {
      struct stat status {};
      is_there = ::stat(found.gl_pathv[i], &status) == 0 && S_ISSOCK(status.st_mode);
    }
  }
  ::globfree(&found);
  return is_there;
}

HostError needs_program(const Endpoint& endpoint) {
  return {Failure::unreachable,
          fmt::format("the SSH configuration asks for {}, which only the ssh program does",
                      endpoint.needs_program),
          "it is not used, since the configuration or a flag says libssh: --ssh_program auto"};
}

HostError with_hint_at_program(const HostError& refused) {
  const std::string hint = refused.hint();
  return {refused.failure(), refused.what(),
          fmt::format("{}{}where the host wants a password or a code: --ssh_program ssh", hint,
                      hint.empty() ? "" : "; ")};
}

}  // namespace dtool::ssh

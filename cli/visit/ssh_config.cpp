// SPDX-License-Identifier: MIT
// `dtool ssh_config`: a run's machines as hosts of an SSH configuration, for editors, scp and
// rsync.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/options.h"
#include "cli/visit/exec.h"
#include "ssh/config/client_config.h"

namespace dtool::cli {
namespace {

/// ssh reads `%` as the beginning of a token, and blanks and quotes for itself.
std::string line(std::string_view keyword, const std::string& value) {
  std::string text;
  for (const char each : value)
    text += each == '%' ? "%%" : fmt::format("{}{}", each == '"' || each == '\\' ? "\\" : "", each);
  const bool is_plain = value.find_first_of(" \t\"'#\\") == value.npos;
  return fmt::format(fmt::runtime(is_plain ? "  {} {}\n" : "  {} \"{}\"\n"), keyword, text);
}

std::string entry_of(const std::string& name, const ssh::Endpoint& host) {
  std::string text = fmt::format("Host {}\n", name) + line("HostName", host.address) +
                     line("User", host.user) + line("Port", std::to_string(host.port));
  if (host.key_name != host.address) text += line("HostKeyAlias", host.key_name);
  text += line("UserKnownHostsFile", host.known_hosts);
  for (const auto& file : host.identity_files) text += line("IdentityFile", file);
  for (const auto& file : host.certificate_files) text += line("CertificateFile", file);
  if (host.only_named_identities) text += line("IdentitiesOnly", "yes");
  if (!host.jumps.empty()) text += line("ProxyJump", fmt::format("{}", fmt::join(host.jumps, ",")));
  if (host.proxy_command) text += fmt::format("  ProxyCommand {}\n", *host.proxy_command);
  for (const auto& [keyword, value] : host.encryption) text += line(keyword, value);
  return text;
}

class SshConfigAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option("RUN", id_, "a run's id or a part of it; last, last-1 (the newest run)");
    add_connect_options(command, hosts_);
    command.footer(
        "Each machine is the host RUN.I: ssh RUN.0, scp RUN.1:FILE, an editor's remote window. "
        "They go into ~/.ssh/config, where their jump hosts are.");
  }

  int run(Invocation& invocation) override {
    const killfiles::Killfile run = run_to_visit(id_);
    const Targets targets = recorded_targets(run, hosts_, invocation.settings.users());
    const auto config =
        ssh::ClientConfig::read(targets.connect.config_file, targets.connect.settings);
    Console& console = invocation.console;
    nlohmann::json all = nlohmann::json::array();
    std::string text;
    for (std::size_t i = 0; i < run.machines.size(); ++i) {
      const killfiles::Machine& machine = run.machines[i];
      if (targets.hosts[i].is_local) {
        console.note(fmt::format("machine{} of {} is this machine", machine.id, run.run_id));
        continue;
      }
      const std::string name = fmt::format("{}.{}", run.run_id, machine.id);
      const std::string entry = entry_of(name, config.resolve(targets.hosts[i]));
      all.push_back(
          {{"machine", machine.id}, {"host", machine.host}, {"name", name}, {"entry", entry}});
      text += fmt::format("# machine{} of {}: {}\n{}", machine.id, run.run_id,
                          killfiles::run_folder(run.run_id), entry);
    }
    if (console.json()) {
      console.document({{"hosts", all}});
    } else {
      console.write(text);
    }
    return kAllWell;
  }

 private:
  HostOptions hosts_;
  std::string id_;
};

}  // namespace

std::unique_ptr<Action> make_ssh_config() {
  return std::make_unique<SshConfigAction>();
}

}  // namespace dtool::cli

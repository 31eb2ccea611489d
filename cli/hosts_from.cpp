// SPDX-License-Identifier: MIT
// The hosts of groups that stand elsewhere: what a command or Slurm prints, Ansible inventories,
// genders files, SSH client configuration. Reading a list of hosts with `@name` comes here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "cli/settings.h"
#include "killfiles/whole_file.h"
#include "ssh/config/config_block.h"
#include "ssh/host.h"
#include "ssh/machine/files.h"
#include "ssh/machine/run_to_end.h"
#include "ssh/quote.h"
#include "ssh/wire/words.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

[[noreturn]] void refuse(const std::string& fault) {
  throw std::invalid_argument(fault);
}

Names split(std::string_view text, std::string_view separators) {
  Names words;
  for (std::size_t begin = 0; (begin = text.find_first_not_of(separators, begin)) != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

/// The hosts that a program prints, as patterns between blanks.
Names of_program(const Names& program) {
  const auto told = ssh::run_to_end(program);
  if (!told) refuse(fmt::format("{} is not installed on this machine", program.front()));
  if (told->exit_code != 0) {
    const Names lines = split(told->err, "\n");
    refuse(
        fmt::format("exit code {}{}", told->exit_code, lines.empty() ? "" : ": " + lines.back()));
  }
  Names hosts;
  for (const std::string& word : split(told->out, " \t\r\n"))
    std::ranges::move(ssh::expand(word), std::back_inserter(hosts));
  return hosts;
}

Names of_slurm(const std::string& partition) {
  Names program = {"sinfo", "--noheader", "--Node", "--format=%n"};
  if (!partition.empty()) program.push_back("--partition=" + partition);
  return of_program(program);
}

/// The names behind `Host` that stand for one host each.
Names of_ssh_config() {
  const fs::path home = ssh::home_folder();
  Names hosts;
  for (const auto& block : ssh::read_config_blocks(home / ".ssh/config", home / ".ssh", home)) {
    for (const ssh::ConfigCondition& each : block.conditions) {
      if (each.kind != "originalhost" || each.negated) continue;
      std::ranges::copy_if(each.patterns, std::back_inserter(hosts), [](const std::string& name) {
        return name.find_first_of("*?!") == name.npos;
      });
    }
  }
  return hosts;
}

/// Calls `read` with each line; a fault gets the line's place.
void read_lines(const fs::path& file, const std::function<void(std::string_view line)>& read) {
  std::error_code ignored;
  const fs::file_type type = fs::status(file, ignored).type();
  if (type != fs::file_type::regular && type != fs::file_type::not_found)
    refuse("no regular file");  // a pipe or a device may never end
  std::istringstream text(killfiles::read_whole(file));
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    try {
      read(line);
    } catch (const std::invalid_argument& fault) {
      refuse(fmt::format("line {}: {}", number, fault.what()));
    }
  }
}

/// `gpu[1-4],login  gpu,disk=2`: hosts, and their attributes.
Names of_genders(const fs::path& file, const std::string& only) {
  Names hosts;
  read_lines(file, [&](std::string_view line) {
    const Names words = split(line.substr(0, line.find('#')), " \t");
    if (words.empty()) return;
    bool is_meant = only.empty();
    for (std::size_t i = 1; i < words.size(); ++i) {
      for (const std::string& each : split(words[i], ","))
        is_meant |= each == only || each.substr(0, each.find('=')) == only;
    }
    if (is_meant) std::ranges::move(ssh::expand(words.front()), std::back_inserter(hosts));
  });
  return hosts;
}

/// An Ansible inventory, as INI or as YAML of a key a line. Of variables only the hosts' own count.
class Inventory {
 public:
  explicit Inventory(const fs::path& file) {
    const bool is_yaml = file.extension() == ".yml" || file.extension() == ".yaml";
    read_lines(file, [&](std::string_view line) { is_yaml ? read_yaml(line) : read_ini(line); });
  }

  /// The hosts of a group, and of the groups in it.
  Names hosts_of(const std::string& group) const {
    if (!groups_.contains(group)) {
      Names known;
      for (const auto& [name, members] : groups_) known.push_back(name);
      refuse(fmt::format("it has no group '{}'\nhint: it has {}", group, fmt::join(known, ", ")));
    }
    Names hosts;
    Names open = {group};
    std::set<std::string> seen;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (!seen.insert(open[i]).second) continue;
      const Group& members = groups_.at(open[i]);
      for (const std::string& name : members.hosts) hosts.push_back(address_of(name));
      open.insert(open.end(), members.groups.begin(), members.groups.end());
    }
    return hosts;
  }

 private:
  struct Group {
    Names hosts;
    Names groups;
  };
  /// What stands in a section of INI, or below a key of YAML.
  enum class Holds { groups, group, hosts, variables, nothing };
  /// A key of YAML above the line.
  struct Key {
    std::size_t column = 0;
    Holds holds = Holds::nothing;
    std::string group = {};
    Names hosts = {};
  };

  /// Ansible's `[01:50]` and `[0:14:2]` are dtool's `[01-50]` and `[0-14/2]`.
  static std::string pattern_of(std::string text) {
    for (std::size_t open = 0; (open = text.find('[', open)) != text.npos; ++open) {
      const std::size_t size = std::min(text.find(']', open), text.size()) - open - 1;
      std::string range = text.substr(open + 1, size);
      const auto colons = std::ranges::count(range, ':');
      if (colons == 1 && range.size() == 3 && !host::parse_number<int>(range.substr(0, 1)))
        refuse(fmt::format("'{}' has a range of letters\nhint: name each host", text));
      if (range.find_first_not_of("0123456789:") != range.npos || colons < 1 || colons > 2)
        continue;
      range[range.find(':')] = '-';
      if (colons == 2) range[range.find(':')] = '/';
      text.replace(open + 1, size, range);
    }
    return text;
  }

  Names add_hosts(const std::string& group, const std::string& text) {
    Names names = ssh::expand(pattern_of(text));
    for (const std::string& name : names) {
      groups_[group].hosts.push_back(name);
      if (variables_.try_emplace(name).second) groups_["all"].hosts.push_back(name);
    }
    return names;
  }

  void add_group(const std::string& above, const std::string& group) {
    groups_[group];
    groups_[above].groups.push_back(group);
  }

  void read_ini(std::string_view line) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos || line[begin] == '#' || line[begin] == ';') return;
    line = line.substr(begin, std::min(line.find(" #"), line.find("\t#")) - begin);
    const std::string_view title = line.substr(1, line.find(']') - 1);
    const bool is_address = std::ranges::count(title, ':') > 1;  // IPv6
    if (line.front() == '[' && !is_address) {
      const std::string_view part = title.substr(std::min(title.find(':'), title.size()));
      if (part != "" && part != ":vars" && part != ":children")
        refuse(fmt::format("'[{}]' is no section of an inventory", title));
      section_ = part == "" ? Holds::hosts : part == ":vars" ? Holds::nothing : Holds::groups;
      group_ = title.substr(0, title.find(':'));
      groups_[group_];
      return;
    }
    if (section_ == Holds::nothing) return;
    const Names words = ssh::split_shell_words(line);
    if (section_ == Holds::groups) return add_group(group_, words.front());
    for (const std::string& host : add_hosts(group_, words.front())) {
      for (std::size_t i = 1; i < words.size(); ++i) {
        const std::size_t equals = words[i].find('=');
        if (equals == line.npos) refuse(fmt::format("'{}' is no NAME=value", words[i]));
        variables_[host][words[i].substr(0, equals)] = words[i].substr(equals + 1);
      }
    }
  }

  void read_yaml(std::string_view line) {
    const std::size_t column = line.find_first_not_of(' ');
    if (column == line.npos || line[column] == '#' || line.starts_with("---")) return;
    while (!above_.empty() && above_.back().column >= column) above_.pop_back();
    const Key above = above_.empty() ? Key{0, Holds::groups, "all"} : above_.back();
    line = line.substr(column, line.find(" #") - column);
    const bool is_of_list = above.holds == Holds::variables && line.starts_with("- ");
    if (above.holds == Holds::nothing || is_of_list) return;
    const std::size_t colon = std::min(line.find(": "), line.size() - 1);
    const Names key = ssh::split_shell_words(line.substr(0, colon));
    if (key.size() != 1 || line[colon] != ':' || line.find_first_of("{&\t") < colon)
      refuse(
          fmt::format("'{}' is no key of an inventory\nhint: dtool reads YAML that has one key "
                      "a line, and an inventory in Ansible's INI",
                      line));
    above_.push_back(open_key(above, key.front(), line.substr(colon + 1)));
    above_.back().column = column;
  }

  Key open_key(const Key& above, const std::string& key, std::string_view value) {
    if (above.holds == Holds::variables) {
      const bool counts = key.starts_with("ansible_");
      const Names words = counts ? ssh::split_shell_words(value) : Names();
      for (const std::string& host : above.hosts)
        variables_[host][key] = words.empty() ? "" : words.front();
      return {};
    }
    if (above.holds == Holds::group && key == "vars") return {};
    const Names words = split(value, " ");
    if (!words.empty() && words.front() != "{}" && words.front() != "null")
      refuse(fmt::format("'{}' has the value '{}', where names stand", key, words.front()));
    if (above.holds == Holds::hosts)
      return {0, Holds::variables, above.group, add_hosts(above.group, key)};
    if (above.holds == Holds::groups) {
      add_group(above.group, key);
      return {0, Holds::group, key};
    }
    if (key != "hosts" && key != "children")
      refuse(fmt::format("'{}' is neither hosts, children nor vars", key));
    return {0, key == "hosts" ? Holds::hosts : Holds::groups, above.group};
  }

  std::string address_of(const std::string& name) const {
    std::map<std::string, std::string> values = variables_.at(name);
    if (values["ansible_connection"] == "local") return "local";
    const std::string& address = values["ansible_host"];
    ssh::Host host = ssh::parse_host(address.empty() ? name : address);
    if (!values["ansible_user"].empty()) host.user = values["ansible_user"];
    const std::string& port = values["ansible_port"];
    if (!port.empty() && !host::parse_port(port))
      refuse(fmt::format("ansible_port '{}' of {} is not a number from 1 to 65535", port, name));
    host.port = host::parse_port(port).value_or(host.port);
    return ssh::to_string(host);
  }

  std::map<std::string, Group> groups_ = {{"all", {}}};
  std::map<std::string, std::map<std::string, std::string>> variables_;  ///< of each host
  std::string group_ = "ungrouped";  ///< the section of INI that is being read
  Holds section_ = Holds::hosts;
  std::vector<Key> above_;
};

Names names_in(const NamedGroup& group) {
  if (group.from == "command") return of_program({"sh", "-c", group.argument});
  if (group.from == "slurm") return of_slurm(group.only);
  if (group.from == "ssh_config") return of_ssh_config();
  if (group.from == "genders") return of_genders(group.argument, group.only);
  return Inventory(group.argument).hosts_of(group.only.empty() ? "all" : group.only);
}

}  // namespace

std::string hosts_from(const NamedGroup& group) {
  try {
    Names hosts;
    std::set<std::string> seen;
    for (const std::string& name : names_in(group)) {
      // Nothing but a host comes from there: neither a group nor an operator.
      const std::string host = ssh::to_string(ssh::parse_host(name));
      if (seen.insert(host).second) hosts.push_back(host);
    }
    if (hosts.empty()) refuse(group.only.empty() ? "no host" : "no host has " + group.only);
    return fmt::format("{}", fmt::join(hosts, ","));
  } catch (const std::exception& fault) {
    throw std::invalid_argument(fmt::format(
        "{}{}{}: {}", group.from, group.argument.empty() ? "" : " ", group.argument, fault.what()));
  }
}

}  // namespace dtool::cli

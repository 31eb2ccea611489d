// SPDX-License-Identifier: MIT
// Man pages of dtool and its commands.
#include "cli/shell/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "killfiles/version.h"

namespace dtool::cli {
namespace {

/// Text as man(7) takes it: no word of it is an escape, a hyphen is one that can be copied, and no
/// line begins as a request does.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char each : text) {
    if (each == '\\') {
      result += "\\e";
    } else if (each == '-') {
      result += "\\-";
    } else if ((each == '.' || each == '\'') && (result.empty() || result.back() == '\n')) {
      result += fmt::format("\\&{}", each);
    } else {
      result += each;
    }
  }
  return result;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char each) { return std::toupper(each); });
  return text;
}

bool is_command(const CLI::App& app) {
  return app.get_parent() != nullptr;
}

std::string page_name(const CLI::App& app) {
  return is_command(app) ? fmt::format("{}-{}", app.get_parent()->get_name(), app.get_name())
                         : app.get_name();
}

/// As --help has it: its formatter writes both.
const CLI::Formatter& formatter_of(const CLI::App& app) {
  return dynamic_cast<const CLI::Formatter&>(*app.get_formatter());
}

std::string synopsis(const CLI::App& app) {
  std::string usage = formatter_of(app).make_usage(
      &app, is_command(app) ? app.get_parent()->get_name() + " " + app.get_name() : app.get_name());
  const std::size_t colon = usage.find(": ");
  if (colon != usage.npos) usage.erase(0, colon + 2);
  while (!usage.empty() && std::isspace(static_cast<unsigned char>(usage.back())) != 0)
    usage.pop_back();
  return fmt::format(".SH SYNOPSIS\n{}\n", escaped(usage));
}

std::string paragraph(const std::string& term, const std::string& text) {
  return fmt::format(".TP\n.B {}\n{}\n", escaped(term), escaped(text.empty() ? "-" : text));
}

std::string option_paragraph(const CLI::App& app, const CLI::Option& option) {
  const CLI::Formatter& formatter = formatter_of(app);
  const bool is_word = option.get_positional();
  return paragraph(
      formatter.make_option_name(&option, is_word) + formatter.make_option_opts(&option),
      formatter.make_option_desc(&option));
}

/// A section a group, as the headings of --help: `Options`, `Hosts`, `Output`.
std::string option_sections(const CLI::App& app) {
  std::vector<std::string> groups;
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    const std::string& group = option->get_group();
    if (option->get_positional()) {
      text += (text.empty() ? ".SH WORDS\n" : "") + option_paragraph(app, *option);
    } else if (!group.empty() && std::ranges::find(groups, group) == groups.end()) {
      groups.push_back(group);
    }
  }
  for (const std::string& group : groups) {
    text += fmt::format(".SH {}\n", upper(group));
    for (const CLI::Option* option : app.get_options()) {
      if (!option->get_positional() && option->get_group() == group)
        text += option_paragraph(app, *option);
    }
  }
  return text;
}

std::string commands_section(const CLI::App& app) {
  std::string text = ".SH COMMANDS\n";
  for (const CLI::App* each : app.get_subcommands({}))
    text += fmt::format(".TP\n.BR {} (1)\n{}\n", escaped(page_name(*each)),
                        escaped(each->get_description()));
  return text;
}

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nall well\n"
    ".TP\n.B 1\nsome host or process failed; each is named, and the others' work is done\n"
    ".TP\n.B 2\ndtool could not do its job, and nothing was started\n"
    ".TP\n.B 130\ninterrupted\n";

constexpr const char* kFiles =
    ".SH FILES\n"
    ".TP\n.I ~/.dtool/config.toml, ./dtool.toml\ndefaults and groups of hosts; the later file "
    "wins, "
    "flags win over both\n"
    ".TP\n.I ~/.dtool/killfiles\nwhat was started where\n"
    ".TP\n.I ~/.ssh/config, ~/.ssh/known_hosts\nhow hosts are reached, and their keys\n";

std::string see_also(const CLI::App& app) {
  std::string text = ".SH SEE ALSO\n";
  const CLI::App* top = is_command(app) ? app.get_parent() : &app;
  if (is_command(app)) text += fmt::format(".BR {} (1),\n", escaped(page_name(*top)));
  for (const CLI::App* each : top->get_subcommands({})) {
    if (each != &app) text += fmt::format(".BR {} (1),\n", escaped(page_name(*each)));
  }
  return text + ".BR ssh_config (5)\n";
}

}  // namespace

std::string man_page(const CLI::App& app, const std::string& date) {
  const std::string name = page_name(app);
  std::string text =
      fmt::format(".\\\" Made by the build from what {} says.\n.TH {} 1 {} \"dtool {}\"\n",
                  "dtool --help", escaped(upper(name)), date, killfiles::dtool_version());
  std::string summary = app.get_description();
  if (summary.starts_with("dtool: ")) summary.erase(0, 7);
  text += fmt::format(".SH NAME\n{} \\- {}\n", escaped(name), escaped(summary));
  text += synopsis(app);
  if (!is_command(app)) text += commands_section(app);
  text += option_sections(app);
  return text + kExitStatus + kFiles + see_also(app);
}

void write_man_pages(const CLI::App& app, const std::filesystem::path& folder,
                     const std::string& date) {
  std::filesystem::create_directories(folder);
  std::vector<const CLI::App*> pages = {&app};
  for (const CLI::App* each : app.get_subcommands({})) pages.push_back(each);
  for (const CLI::App* each : pages) {
    const std::filesystem::path path = folder / (page_name(*each) + ".1");
    std::ofstream file(path, std::ios::binary);
    file << man_page(*each, date);
    file.close();
    if (!file) throw std::system_error(errno, std::generic_category(), path.string());
  }
}

}  // namespace dtool::cli

// dtool's entry: finds the subcommand, reads flags and settings, runs it, turns exceptions into
// messages.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/settings.h"
#include "killfiles/nearest.h"
#include "ssh/client_config.h"
#include "ssh/fleet.h"

namespace dtool::cli {
namespace {

struct Row {
  const char* name;
  const char* summary;
  std::unique_ptr<Action> (*make)();
};

constexpr std::array kSubcommands = {
    Row{"config", "push a set-up script to every host and run it there in a screen session",
        make_config},
    Row{"command", "run a command on all hosts at once", make_command},
    Row{"run", "start a training run, or any program, across machines", make_run},
    Row{"kill", "end every process of a run on every machine, and prove that none is left",
        make_kill},
    Row{"list", "recorded runs, newest first", make_list},
    Row{"trust", "look at unknown hosts' keys and add them to known_hosts", make_trust},
};

struct Arguments {
  std::vector<std::string> own;      ///< dtool's, program name left out
  std::vector<std::string> program;  ///< after `--`
};

/// Cuts at `--`, and reads `--runs-on` as `--runs_on`: each flag has both spellings.
Arguments split_arguments(int argc, char** argv) {
  Arguments arguments;
  const auto end = argv + argc;
  const auto dashes =
      std::find_if(argv + 1, end, [](const char* word) { return std::strcmp(word, "--") == 0; });
  arguments.own.assign(argv + 1, dashes);
  if (dashes != end) arguments.program.assign(dashes + 1, end);
  for (std::string& word : arguments.own) {
    if (!word.starts_with("--")) continue;
    const auto name_end = std::find(word.begin(), word.end(), '=');
    std::replace(word.begin() + 2, name_end, '-', '_');
  }
  return arguments;
}

void add_console_options(CLI::App& app, ConsoleOptions& options) {
  static const std::map<std::string, Color> colors = {
      {"auto", Color::automatic}, {"always", Color::always}, {"never", Color::never}};
  app.add_flag("--json", options.json, "one JSON document on standard output, nothing else there");
  app.add_flag("--quiet", options.quiet, "no progress and no summaries");
  app.add_option_function<std::string>(
         "--color", [&options](const std::string& text) { options.color = colors.at(text); },
         "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
}

/// what() of our exceptions: a sentence, then perhaps a line `hint: …`.
void report(Console& console, const std::string& text) {
  const std::string mark = "\nhint: ";
  const std::size_t at = text.find(mark);
  if (at == text.npos) {
    console.fail(text);
  } else {
    console.fail(text.substr(0, at), text.substr(at + mark.size()));
  }
}

int usage_error(Console& console, const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const std::string name =
      chosen.empty() ? "dtool" : fmt::format("dtool {}", chosen.front()->get_name());
  std::string sentence = error.what();
  std::replace(sentence.begin(), sentence.end(), '\n', ' ');
  console.fail(fmt::format("{}: {}", name, sentence),
               fmt::format("{} --help lists every flag", name));
  return kNotDone;
}

int run_action(Console& console, Action& action, Arguments arguments, int argc, char** argv) {
  const Settings settings =
      read_settings(ssh::home_folder() / ".dtool" / "config.toml", "dtool.toml");
  Invocation invocation{console, settings, std::vector<std::string>(argv, argv + argc),
                        std::move(arguments.program)};
  return action.run(invocation);
}

int run(Console& console, int argc, char** argv) {
  Arguments arguments = split_arguments(argc, argv);
  ConsoleOptions console_options;
  CLI::App app("dtool: push set-up, code and training runs to machines reached over SSH");
  app.name("dtool");
  app.set_version_flag("--version", "dtool " DTOOL_VERSION);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  std::map<const CLI::App*, std::unique_ptr<Action>> actions;
  for (const Row& row : kSubcommands) {
    CLI::App* subcommand = app.add_subcommand(row.name, row.summary);
    std::unique_ptr<Action>& action = actions[subcommand] = row.make();
    action->add_options(*subcommand);
    add_console_options(*subcommand, console_options);
  }
  try {
    std::vector<std::string> reversed(arguments.own.rbegin(), arguments.own.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    console.write(chosen.empty() ? app.help() : chosen.front()->help());
    return kAllWell;
  } catch (const CLI::CallForVersion&) {
    console.say("dtool " DTOOL_VERSION);
    return kAllWell;
  } catch (const CLI::ParseError& error) {
    console.configure(console_options);
    return usage_error(console, app, error);
  }
  console.configure(console_options);
  if (app.get_subcommands().empty()) {
    console.write(app.help());
    return kAllWell;
  }
  return run_action(console, *actions.at(app.get_subcommands().front()), std::move(arguments), argc,
                    argv);
}

}  // namespace
}  // namespace dtool::cli

int main(int argc, char** argv) {
  using namespace dtool::cli;
  if (argc > 1 && std::strcmp(argv[1], "remote_shell") == 0) {
    return dtool::ssh::remote_shell(std::vector<std::string>(argv + 2, argv + argc));
  }
  Console console;
  try {
    return run(console, argc, argv);
  } catch (const std::exception& error) {
    report(console, error.what());
    return kNotDone;
  }
}

// SPDX-License-Identifier: MIT
// dtool's main(): finds the subcommand, reads flags and settings, runs it, turns exceptions into
// messages.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/action.h"
#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/settings.h"
#include "cli/shell/completion.h"
#include "killfiles/version.h"
#include "ssh/fanout/fleet.h"
#include "ssh/machine/files.h"
#include "ssh/machine/interrupts.h"
#include "ssh/notice.h"
#include "ssh/program/askpass.h"

namespace dtool::cli {
namespace {

struct Row {
  const char* name;
  const char* summary;
  std::unique_ptr<Action> (*make)();
  TakesProgram takes_program = TakesProgram::no;
};

constexpr std::array kSubcommands = {
    Row{"config", "push a set-up script to every host and run it there in a screen session",
        make_config},
    Row{"command", "run a command on all hosts at once", make_command, TakesProgram::yes},
    Row{"copy", "copy files and folders to all hosts, once and what differs later", make_copy},
    Row{"run", "start a training run, or any program, across machines", make_run,
        TakesProgram::yes},
    Row{"rerun", "repeat an earlier run: the same code, settings, seed and hosts", make_rerun},
    Row{"status", "show how each machine of a run is doing, and why a run failed", make_status},
    Row{"logs", "show the logs of a run's machines as one, each line with its machine", make_logs},
    Row{"exec", "run a command in a run's folder and environment, on its machines", make_exec,
        TakesProgram::yes},
    Row{"ssh", "open a shell in a run's folder and environment, or on a host", make_ssh,
        TakesProgram::yes},
    Row{"attach", "show the live screen session of one machine in this terminal", make_attach},
    Row{"forward", "show ports of a run or a host as this machine's own, as TensorBoard's",
        make_forward},
    Row{"tensorboard", "show TensorBoard of a run, with its port as this machine's own",
        make_tensorboard},
    Row{"ssh_config", "print a run's machines as hosts for ssh, scp and editors", make_ssh_config},
    Row{"fetch", "copy the outputs of a run here, one folder per machine", make_fetch},
    Row{"plot", "plot curves of loss, learning rate, throughput and accuracy", make_plot},
    Row{"kill", "end every process of a run on every machine, and prove that none is left",
        make_kill},
    Row{"list", "list recorded runs, newest first; with --state also the state of each", make_list},
    Row{"show", "show what a run was made of, and how it ended", make_show},
    Row{"diff", "show where two runs differ: code, settings, hosts, last metrics", make_diff},
    Row{"check", "check what each host has and lacks for a run", make_check},
    Row{"install", "send the bundled trainer to hosts that have none", make_install},
    Row{"clean", "show what dtool keeps on hosts for later runs, and delete what is unused",
        make_clean},
    Row{"hosts", "print the hosts that patterns and groups name, and reach none", make_hosts},
    Row{"trust", "show unknown hosts' keys and add them to known_hosts", make_trust},
    Row{"disconnect", "close the connections that are kept for later commands", make_disconnect},
    Row{"completion", "print the script that completes dtool's commands in bash, zsh or fish",
        make_completion},
};

void add_console_options(CLI::App& app, ConsoleOptions& options) {
  static const std::map<std::string, Color> colors = {
      {"auto", Color::automatic}, {"always", Color::always}, {"never", Color::never}};
  Options command(app);
  command.add_flag("--json", options.json, "print one JSON document, and nothing else")
      .group("Output");
  command.add_flag("--quiet", options.quiet, "no progress and no summaries").group("Output");
  Option(app.add_option_function<std::string>(
                "--color", [&options](const std::string& text) { options.color = colors.at(text); },
                "auto, always or never (auto)")
             ->type_name("WHEN"))
      .one_of({"auto", "always", "never"})
      .group("Output");
}

std::string version_line() {
  return fmt::format("dtool {}", killfiles::dtool_version());
}

int run_action(Console& console, Action& action, Words words, int argc, char** argv) {
  SettingsFiles settings(ssh::home_folder() / ".dtool" / "config.toml", "dtool.toml");
  settings.users();  // a mistake in the user's own file is told by every command
  Invocation invocation{console, settings, std::vector<std::string>(argv, argv + argc),
                        std::move(words.program)};
  return action.run(invocation);
}

/// Answers the hidden commands of shells and of the build; returns whether it was one.
bool answered_hidden(Console& console, const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return false;
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words.front() == "__complete") {
    console.write(to_lines(complete(app, rest, live_values())));
    return true;
  }
  if (words.front() != "__man" || rest.size() != 2) return false;
  write_man_pages(app, rest[0], rest[1]);
  return true;
}

/// This process becomes the user's pager, so that a signal ends both; a child writes.
void become_pager(const std::string& text) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const pid_t writer = ::fork();
  if (writer == 0) {
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t count = ::write(ends[1], rest.data(), rest.size());
      if (count <= 0) break;
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
    ::_exit(0);
  }
  if (writer < 0 || ::dup2(ends[0], STDIN_FILENO) < 0) return;
  ::setenv("LESS", "FRX", 0);
  ::execl("/bin/sh", "sh", "-c",
          "command -v \"${PAGER%% *}\" > /dev/null && eval \"exec $PAGER\"; "
          "command -v less > /dev/null && exec less; exec cat",
          nullptr);
}

/// Text that is longer than the terminal goes through a pager.
void show_help(Console& console, const std::string& text) {
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  if (console.is_terminal(To::out) && lines >= terminal_size(STDOUT_FILENO).rows)
    become_pager(text);
  console.write(text);
}

int run(Console& console, int argc, char** argv) {
  ConsoleOptions console_options;
  CLI::App app("dtool: set up machines over SSH and run training on them");
  app.name("dtool");
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("-V,--version", version_line(), "print the version");
  app.require_subcommand(0, 1);
  TakesPrograms takes_program;
  Words words;
  app.formatter(make_help_formatter(takes_program, words.whole_help));
  std::map<const CLI::App*, std::unique_ptr<Action>> actions;
  for (const Row& row : kSubcommands) {
    CLI::App* subcommand = app.add_subcommand(row.name, row.summary)->group("Commands");
    takes_program[subcommand] = row.takes_program;
    std::unique_ptr<Action>& action = actions[subcommand] = row.make();
    Options options(*subcommand);
    action->add_options(options);
    add_console_options(*subcommand, console_options);
  }
  // It is here, since commands inherit it.
  app.footer("`dtool COMMAND --help` shows a command's flags that matter most, `--help all` all.");
  if (answered_hidden(console, app, {argv + 1, argv + argc})) return kAllWell;
  words = read_words(app, argc, argv);
  try {
    std::vector<std::string> reversed(words.own.rbegin(), words.own.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    if (!app.remaining().empty())
      throw explain(app, CLI::ExtrasError(app.remaining()), takes_program, words.program);
    console.configure(console_options);
    show_help(console, chosen.empty() ? app.help() : chosen.front()->help("dtool"));
    return kAllWell;
  } catch (const CLI::CallForVersion&) {
    console.say(version_line());
    return kAllWell;
  } catch (const CLI::ParseError& error) {
    console.configure(console_options);
    throw explain(app, error, takes_program, words.program);
  }
  console.configure(console_options);
  if (app.get_subcommands().empty()) {
    console.write(app.help());
    return kAllWell;
  }
  const CLI::App* chosen = app.get_subcommands().front();
  if (!words.program.empty() && takes_program.at(chosen) == TakesProgram::no) {
    throw UsageError(fmt::format("dtool {} takes no words after --", chosen->get_name()),
                     "dtool run, command, exec and ssh do");
  }
  return run_action(console, *actions.at(chosen), std::move(words), argc, argv);
}

/// If a standard stream is closed (`>&-`), the next socket would get its number, and its text would
/// go to a host. So a stream on which every use fails takes its place.
void occupy_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // takes the lowest free number
  }
}

}  // namespace
}  // namespace dtool::cli

int main(int argc, char** argv) {
  using namespace dtool::cli;
  // A caller that ignores it, such as cron's children or a Python parent, leaves no exit code.
  ::signal(SIGCHLD, SIG_DFL);
  if (argc > 1 && std::strcmp(argv[1], "remote_shell") == 0) {
    return dtool::ssh::remote_shell(std::vector<std::string>(argv + 2, argv + argc));
  }
  occupy_standard_streams();
  // Where it is lacking, as under cron, programs and the code of hosts that runs here need it, too.
  ::setenv("HOME", dtool::ssh::home_folder().c_str(), 1);
  if (dtool::ssh::is_askpass(argc)) return dtool::ssh::askpass(argv[1]);
  dtool::ssh::watch_interrupts();
  Console console;
  dtool::ssh::give_notices_to([&console](std::string_view line) { console.note(line); });
  try {
    return run(console, argc, argv);
  } catch (const OutputLost& error) {
    if (!error.reader_left()) console.fail(error);
    return kSomeFailed;  // not kNotDone: hosts may have begun
  } catch (const std::exception& error) {
    console.fail(error);
    return kNotDone;
  }
}

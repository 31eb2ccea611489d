// SPDX-License-Identifier: MIT
#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/console.h"
#include "cli/words.h"
#include "killfiles/nearest.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

/// The subcommand that was chosen, else the whole program.
const CLI::App& chosen_in(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : *chosen.front();
}

std::string name_in_full(const CLI::App& app) {
  return app.get_parent() == nullptr
             ? app.get_name()
             : fmt::format("{} {}", app.get_parent()->get_name(), app.get_name());
}

std::string long_name(const CLI::Option& flag) {
  return "--" + flag.get_lnames().front();
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      // Who mistypes a flag does not give up the proof that nothing is left.
      if (name != "forget") names.push_back("--" + name);
    }
  }
  return names;
}

std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  return names;
}

bool has_word(std::string_view words, const std::string& word) {
  return fmt::format(" {} ", words).find(" " + word + " ") != std::string::npos;
}

/// The hint at a flag of another program; empty if it is none that has its part in the command.
std::string others_hint(const CLI::App& command, const std::string& flag) {
  const auto other = std::ranges::find_if(kOthersFlags, [&](const OthersWords& each) {
    return has_word(each.words, flag) &&
           command.get_option_no_throw(std::string(each.ours)) != nullptr;
  });
  return other == std::end(kOthersFlags) ? "" : std::string(other->hint);
}

UsageError unknown_word(const CLI::App& app, const std::string& word,
                        const std::vector<std::string>& known, const std::string& kind) {
  std::optional<std::string> meant = killfiles::nearest(word, known);
  const auto others = std::ranges::find_if(
      kOthersCommands, [&](const auto& row) { return has_word(row.first, word); });
  if (app.get_parent() == nullptr && others != std::end(kOthersCommands))
    return UsageError(fmt::format("{} is not a {} of {}", word, kind, name_in_full(app)),
                      fmt::format("did you mean {}?", others->second));
  const auto is_longer = [&word](const std::string& each) { return each.starts_with(word); };
  if (!meant && std::ranges::count_if(known, is_longer) == 1)
    meant = *std::ranges::find_if(known, is_longer);
  const std::string all = fmt::format("{} --help{} lists all", name_in_full(app),
                                      app.get_parent() != nullptr ? " all" : "");
  return UsageError(fmt::format("{} is not a {} of {}", word, kind, name_in_full(app)),
                    meant ? fmt::format("did you mean {}? {}", *meant, all) : all);
}

/// A hint at the likely meaning of words that are neither flags nor a flag's value.
std::string hint_at_words(const CLI::App& command, const std::vector<std::string>& words,
                          TakesProgram takes, const std::vector<std::string>& program) {
  const std::string all = fmt::format("{} --help all lists all flags", name_in_full(command));
  std::string line = fmt::format("{}", fmt::join(words, " "));
  const CLI::Option* given = command.get_option_no_throw("--command");
  if (takes == TakesProgram::yes && given == nullptr) {
    const bool is_setting = words.front().find('.') < words.front().find('=');
    if (const std::string kwargs = config_kwargs_of(words); is_setting && !kwargs.empty())
      return fmt::format("settings of the experiment go after --config_kwargs: {}; {}", kwargs,
                         all);
    // The first of the words has been taken for the experiment.
    const CLI::Option* experiment = command.get_option_no_throw("EXPERIMENT");
    if (experiment != nullptr && experiment->count() > 0) {
      const std::string first = experiment->as<std::string>();
      line.insert(0, first.ends_with(".toml") ? "" : first + " ");
    }
    const char* run = command.get_option_no_throw("--machine") != nullptr ? " RUN" : "";
    return fmt::format("a program and its words go after --: {}{} -- {}; {}", name_in_full(command),
                       run, line, all);
  }
  if (given != nullptr && given->count() == 0 && program.empty()) {
    const std::size_t blank = line.find(' ');
    const bool may_have_host =
        blank != line.npos && command.get_option_no_throw("--runs_on")->count() == 0;
    return fmt::format("a command goes after --: {} -- {}{}; {}", name_in_full(command), line,
                       may_have_host ? fmt::format(", or with hosts: --runs_on {} -- {}",
                                                   line.substr(0, blank), line.substr(blank + 1))
                                     : "",
                       all);
  }
  const CLI::Option* script = command.get_option_no_throw("--config_script");
  if (script != nullptr && script->count() == 0)
    return fmt::format("the script goes after --config_script: --config_script {}; {}", line, all);
  if (command.get_name() == "disconnect" && line == "all")
    return "dtool disconnect alone closes all";
  if (command.get_option_no_throw("--tail") != nullptr)
    return line.find_first_not_of("0123456789") == line.npos
               ? fmt::format("the last lines: --tail {}", line)
               : "logs takes one run; " + all;
  const CLI::Option* hosts = command.get_option_no_throw("--runs_on");
  if (hosts != nullptr && hosts->count() == 0)
    return fmt::format("hosts go after --runs_on, and are joined by commas: {} --runs_on {}; {}",
                       name_in_full(command), fmt::join(words, ","), all);
  return fmt::format("a value with spaces needs quotes{}; {}",
                     hosts != nullptr ? ", and hosts are joined by commas" : "", all);
}

/// For words that nothing was waiting for. CLI11 collects all of them; the first flag among them is
/// the likely mistake, and a word after it its value.
UsageError unexpected(const CLI::App& app, const std::vector<std::string>& words,
                      const TakesPrograms& takes_program, const std::vector<std::string>& program) {
  const std::vector<std::string> subcommands = subcommands_of(app);
  const CLI::App& chosen = chosen_in(app);
  if (!subcommands.empty() && !words.front().starts_with('-'))
    return unknown_word(app, words.front(), subcommands, "command");
  const auto flag =
      std::ranges::find_if(words, [](const auto& word) { return word.starts_with('-'); });
  // `dtool run python train.py --lr 1`, and `dtool command uptime -p`
  const bool is_line =
      program.empty() && flag != words.begin() && flag != words.end() &&
      (chosen.get_option_no_throw("EXPERIMENT") != nullptr ||
       (chosen.get_option_no_throw("--command") != nullptr && !flag->starts_with("--")));
  if (flag == words.end() || is_line) {
    const auto takes = takes_program.find(&chosen);
    return UsageError(
        fmt::format("{} does not expect the word {}", name_in_full(app), words.front()),
        hint_at_words(chosen, words,
                      takes == takes_program.end() ? TakesProgram::no : takes->second, program));
  }
  const std::string name = flag->substr(0, flag->find('='));
  if (&chosen != &app && chosen.get_option_no_throw(name) != nullptr) {
    return UsageError(fmt::format("{} stands before the command", name),
                      fmt::format("flags follow it: {} {}", name_in_full(chosen), name));
  }
  if (const std::string hint = others_hint(chosen, name); !hint.empty())
    return UsageError(fmt::format("{} is not a flag of {}", name, name_in_full(chosen)), hint);
  return unknown_word(app, name, flags_of(app), "flag");
}

constexpr std::string_view kHint = "\nhint: ";
constexpr std::size_t kHelpColumns = 80;
constexpr std::size_t kDescriptions = 30;  ///< the column in which they begin

std::size_t indent_of_help(std::string_view line, std::size_t) {
  return line.starts_with("  ") ? kDescriptions : 0;
}

/// mpirun writes long flags with one dash, where CLI11 would read letters: `-hostfile` as `-h`, and
/// `-wait` as the host `ait`. A letter takes only a number that is attached to it.
void refuse_single_dash(const CLI::App& command, const std::string& word) {
  if (word.size() < 3 || word[0] != '-' || word[1] == '-') return;
  const std::string meant = with_known_spelling("-" + word.substr(0, word.find('=')));
  std::string hint = command.get_option_no_throw(meant) != nullptr
                         ? fmt::format("did you mean {}?", meant)
                         : others_hint(command, word);
  if (hint.empty()) hint = others_hint(command, meant);
  const std::string letter = word.substr(0, 2);
  const CLI::Option* flag = command.get_option_no_throw(letter);
  const bool is_number = word.find_first_not_of("0123456789", 2) == word.npos;
  const bool takes_number = flag != nullptr && flag->get_items_expected_max() > 0 && is_number;
  if (hint.empty() && flag != nullptr && !takes_number)
    hint = fmt::format("a flag of one letter stands alone: {} {}", letter, word.substr(2));
  if (!hint.empty())
    throw UsageError(fmt::format("{} is not a flag of {}", word, name_in_full(command)), hint);
}

/// An empty shell variable leaves its flag without a value, and the next flag would become that.
void refuse_flag_as_value(const CLI::App& command, const CLI::Option& flag,
                          const std::string& word) {
  const std::string name = with_known_spelling(word.substr(0, word.find('=')));
  if (!name.starts_with("--") || command.get_option_no_throw(name) == nullptr) return;
  throw UsageError(fmt::format("{} wants a value, and {} follows", flag.get_name(), name),
                   fmt::format("is a shell variable empty? A value that begins so follows =: {}={}",
                               flag.get_name(), word));
}

/// Word processors and web pages make other dashes of `--`.
void refuse_typographic_dash(const std::string& word) {
  const auto dash_of = [](std::string_view text) -> std::size_t {
    for (const std::string_view dash : {"‐", "‑", "‒", "–", "—", "―", "−", "-"})
      if (text.starts_with(dash)) return dash.size();
    return 0;
  };
  std::string_view name = word;
  bool is_plain = true;
  while (const std::size_t size = dash_of(name)) {
    is_plain = is_plain && size == 1;
    name.remove_prefix(size);
  }
  if (is_plain) return;
  throw UsageError(fmt::format("{} has a typographic dash", word),
                   fmt::format("type {}{}", name.size() == 1 ? "-" : "--", name));
}

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter(const TakesPrograms& takes_program, const bool& shows_all)
      : takes_program_(takes_program), shows_all_(shows_all) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const auto row = std::ranges::find(kShortHelps, app->get_name(), &ShortHelp::command);
    const bool is_short = row != std::end(kShortHelps) && !shows_all_;
    const std::string help = is_short ? short_help(*app, std::move(name), *row)
                                      : CLI::Formatter::make_help(app, std::move(name), mode);
    std::string text = CLI::detail::find_and_replace(help, "\n\n\n", "\n\n");
    if (text.ends_with("\n\n")) text.pop_back();
    return wrapped(text, kHelpColumns, indent_of_help);
  }

  // CLI11 puts the checks' names into the type: `UINT:POSITIVE`, `WHEN:{auto,always,never}`.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const std::string type = option->get_type_name();
    // A check's name comes behind a colon; one in brackets is the value's own: `SRC[:DST]`.
    std::size_t colon = type.find(':');
    if (type.find('[') < colon) colon = type.find(':', type.find(']'));
    const std::string name = type.substr(0, colon);
    const bool is_number = name == "UINT" || name == "INT" || name == "FLOAT";
    if (option->get_positional() && name == "TEXT") return "";
    return " " + (is_number ? "N" : name);
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string& value = option->get_default_str();
    return value.empty() ? option->get_description()
                         : fmt::format("{} ({})", option->get_description(), value);
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, name);
    const std::string theirs = "[SUBCOMMAND]";
    const std::size_t at = usage.find(theirs);
    if (at != usage.npos) usage.replace(at, theirs.size(), "COMMAND");
    const auto takes = takes_program_.find(app);
    if (takes != takes_program_.end() && takes->second == TakesProgram::yes)
      usage.insert(usage.find_last_not_of('\n') + 1, " [-- PROGRAM ARGS...]");
    return usage;
  }

 private:
  std::string short_help(const CLI::App& app, std::string name, const ShortHelp& row) const {
    std::vector<const CLI::Option*> shown;
    const auto all = app.get_options([](const CLI::Option* each) { return each->nonpositional(); });
    for (const CLI::Option* each : all) {
      const bool is_own =
          each->get_group() == "Options" && row.flags.empty() && each != app.get_help_ptr();
      const auto is_in = [each](std::string_view flags) {
        return has_word(flags, long_name(*each));
      };
      if (is_own || is_in(row.flags) || is_in(kFirstSharedFlags)) shown.push_back(each);
    }
    return fmt::format("{}:\n  {}\n\n{}{}{}\n`{} --help all` lists all {} flags.\n",
                       app.get_description(), row.example, make_usage(&app, std::move(name)),
                       make_positionals(&app), make_group("Options", false, shown),
                       name_in_full(app), all.size());
  }

  const TakesPrograms& takes_program_;
  const bool& shows_all_;
};

}  // namespace

std::string config_kwargs_of(const std::vector<std::string>& settings) {
  nlohmann::json all = nlohmann::json::object();
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    std::string key = setting.substr(0, equals);
    if (equals == setting.npos || key.empty() || key.find_first_of("{\"' ") != key.npos) return "";
    const std::string text = setting.substr(equals + 1);
    nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
    if (value.is_discarded()) value = text;
    for (std::size_t dot = 0; dot != key.npos; key.resize(dot == key.npos ? 0 : dot)) {
      dot = key.rfind('.');
      nlohmann::json table;
      table[key.substr(dot + 1)] = std::move(value);  // npos + 1 is 0
      value = std::move(table);
    }
    all.merge_patch(value);
  }
  return "--config_kwargs " + ssh::quote(all.dump());
}

std::string with_known_spelling(std::string word) {
  if (!word.starts_with("--")) return word;
  const auto name_end = std::find(word.begin(), word.end(), '=');
  std::replace(word.begin() + 2, name_end, '-', '_');
  return word;
}

Words read_words(const CLI::App& app, int argc, char** argv) {
  Words words;
  const auto end = argv + argc;
  const auto dashes =
      std::find_if(argv + 1, end, [](const char* word) { return std::strcmp(word, "--") == 0; });
  std::vector<std::string> own(argv + 1, dashes);
  if (dashes != end) words.program.assign(dashes + 1, end);
  if (own == std::vector<std::string>{"version"}) own.front() = "--version";
  if (!own.empty() && own.front() == "help") {
    own.erase(own.begin());
    own.insert(own.end() - (!own.empty() && own.back() == "all" ? 1 : 0), "--help");
  }
  const auto help =
      std::ranges::find_if(own, [](const auto& word) { return word == "--help" || word == "-h"; });
  if (help != own.end() && help + 1 != own.end() && help[1] == "all") {
    words.whole_help = true;
    own.erase(help + 1);
  }
  const CLI::App* reader = &app;
  const CLI::Option* waiting = nullptr;  // the flag whose value comes next
  for (const std::string& word : own) {
    const CLI::Option* flag = std::exchange(waiting, nullptr);
    words.own.push_back(flag != nullptr ? word : with_known_spelling(word));
    if (flag != nullptr) {
      refuse_flag_as_value(*reader, *flag, word);
      continue;
    }
    refuse_typographic_dash(word);
    const auto is_named = [&word](const CLI::App* each) { return each->get_name() == word; };
    if (const auto found = app.get_subcommands(is_named); reader == &app && !found.empty()) {
      reader = found.front();
    } else if (word.starts_with('-')) {
      refuse_single_dash(*reader, word);
      const CLI::Option* option = reader->get_option_no_throw(words.own.back());
      if (option != nullptr && option->get_items_expected_min() > 0) waiting = option;
    }
  }
  if (dashes != end && words.program.empty() && reader->get_name() == "command")
    throw UsageError("nothing stands after --", "is a shell variable empty?");
  return words;
}

UsageError explain(const CLI::App& app, const CLI::ParseError& error,
                   const TakesPrograms& takes_program, const std::vector<std::string>& program) {
  const CLI::App& chosen = chosen_in(app);
  if (const auto before = app.remaining(); !before.empty())
    return unexpected(app, before, takes_program, program);
  if (const auto words = chosen.remaining(); !words.empty())
    return unexpected(chosen, words, takes_program, program);
  std::string sentence = error.what();
  std::string meant;  // as Option::one_of tells it
  if (const std::size_t at = sentence.rfind(kHint);
      at != sentence.npos && sentence.ends_with('?')) {
    meant = sentence.substr(at + kHint.size()) + " ";
    sentence.resize(at);
  }
  std::ranges::replace(sentence, '\n', ' ');
  if (const std::size_t at = sentence.find(": 1 required "); at != sentence.npos) {
    sentence = fmt::format("{} wants a value", sentence.substr(0, at));
  } else if (const std::size_t end = sentence.find(": At Most 1 required"); end != sentence.npos) {
    sentence = fmt::format("{} is given more than once", sentence.substr(0, end));
  }
  // A word of capitals is an argument's name.
  const bool is_name = sentence.size() > 1 && std::isupper(static_cast<unsigned char>(sentence[1]));
  if (!is_name)
    sentence.front() =
        static_cast<char>(std::tolower(static_cast<unsigned char>(sentence.front())));
  const std::string help =
      fmt::format("{}{} --help all lists all flags and their values", meant, name_in_full(chosen));
  const bool is_run = sentence.starts_with("RUN ") || sentence.starts_with("--resume wants");
  return UsageError(sentence, is_run ? "dtool list shows the runs, and last is the newest" : help);
}

std::shared_ptr<CLI::FormatterBase> make_help_formatter(const TakesPrograms& takes_program,
                                                        const bool& shows_all) {
  auto formatter = std::make_shared<HelpFormatter>(takes_program, shows_all);
  formatter->label("Usage", "usage");
  formatter->column_width(kDescriptions);
  return formatter;
}

}  // namespace dtool::cli

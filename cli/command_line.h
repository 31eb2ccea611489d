// SPDX-License-Identifier: MIT
// The words of the command line before and after CLI11 reads them: both spellings of a flag, help,
// and suggestions for an unknown word. main.cpp calls it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/action.h"

namespace CLI {
class App;
class FormatterBase;
class ParseError;
}  // namespace CLI

namespace dtool::cli {

struct Words {
  std::vector<std::string> own;      ///< dtool's own, without the program name
  std::vector<std::string> program;  ///< the words after `--`
  bool whole_help = false;           ///< `--help all`: all flags, not only those that matter most
};

/// `--config_kwargs '{"train":{"epochs":3}}'` of `train.epochs=3`, which is how other programs have
/// it. Empty if a word is none such.
std::string config_kwargs_of(const std::vector<std::string>& settings);

/// `--runs-on=x` as `--runs_on=x`; words that are not flags stay.
std::string with_known_spelling(std::string word);

/// Cuts at `--`. Reads `--runs-on` as `--runs_on`, `help run` as `run --help`, and `--help all` as
/// `--help`; values of flags stay.
Words read_words(const CLI::App& app, int argc, char** argv);

/// Whether the command accepts words after `--`.
enum class TakesProgram { no, yes };
/// For each command.
using TakesPrograms = std::map<const CLI::App*, TakesProgram>;

/// What is wrong with the command line, with the nearest known word. `program`: the words after
/// `--`.
UsageError explain(const CLI::App& app, const CLI::ParseError& error,
                   const TakesPrograms& takes_program,
                   const std::vector<std::string>& program = {});

/// Help in dtool's form: `--width N`, and the default after the description. It reads
/// `takes_program` and `shows_all` (Words::whole_help) when help is asked for.
std::shared_ptr<CLI::FormatterBase> make_help_formatter(const TakesPrograms& takes_program,
                                                        const bool& shows_all);

}  // namespace dtool::cli

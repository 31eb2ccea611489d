// SPDX-License-Identifier: MIT
#include "cli/plan/program_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string_view>

#include "cli/action.h"
#include "cli/assignments.h"
#include "cli/command_line.h"
#include "cli/options.h"
#include "cli/plan/code_tree.h"
#include "killfiles/nearest.h"
#include "ssh/host/child.h"
#include "ssh/quote.h"
#include "sync/tree.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

/// Flags of `dtool run` that programs seldom have themselves.
constexpr std::array<std::string_view, 9> kOwnFlags = {
    "--runs_on",  "--follow",  "--no_sync",           "--extra_tag", "--own_tree",
    "--in_place", "--dry_run", "--env_activate_path", "--on_failure"};
constexpr std::array<std::string_view, 7> kShellWords = {"cd",    "source", "export", "ulimit",
                                                         "unset", "alias",  "set"};

/// The first bytes of a file; empty if it cannot be read.
std::string beginning_of(const fs::path& file) {
  constexpr std::size_t kMost = 1U << 20U;
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMost, '\0');
  stream.read(text.data(), kMost);
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

bool imports_mpi(const std::string& script) {
  std::istringstream lines(beginning_of(script));
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(" \t"));
    if (line.starts_with("from mpi4py") || line.starts_with("import mpi4py")) return true;
  }
  return false;
}

bool is_script(const fs::path& file) {
  return file.extension() == ".py" || file.extension() == ".sh";
}

bool is_away(const RunPlan& plan) {
  return std::ranges::any_of(plan.machines,
                             [](const MachinePlan& each) { return !each.host.is_local; });
}

/// Without a slash a program is looked for in PATH, where the current folder seldom is.
void refuse_bare_script(const RunPlan& plan) {
  const std::string& name = plan.program.front();
  std::error_code unseen;
  const bool has_path =
      std::ranges::any_of(plan.variables, [](const auto& each) { return each.first == "PATH"; });
  if (has_path || name.find('/') != name.npos || !is_script(name) ||
      !fs::is_regular_file(name, unseen) || host::is_program(name))
    return;
  const bool is_python = fs::path(name).extension() == ".py";
  throw UsageError(name + " is in this folder, but a name without a slash is looked for in PATH",
                   "write " + (is_python ? "python3 " : "./"s) + name);
}

void note_own_flags(const RunPlan& plan, std::vector<std::string>& notes) {
  for (const std::string& word : plan.program) {
    const std::string flag = with_known_spelling(word.substr(0, word.find('=')));
    if (std::ranges::count(kOwnFlags, flag) == 0) continue;
    notes.push_back(fmt::format("{} stands after --, so {} gets it, and not dtool",
                                word.substr(0, word.find('=')),
                                script_of(plan.program).value_or(plan.program.front())));
  }
}

/// A variable or an operator that the shell here was kept from reading. Behind `-c` or `-e` stands
/// a text for a shell or another interpreter.
void note_shell_words(const std::vector<std::string>& program, std::vector<std::string>& notes) {
  static const std::regex before_text("-[a-z]*[ce]");
  static const std::regex operators(R"([&|]{1,2}|;|[12&]?>{1,2}|<|2>&1)");
  static const std::regex variable(R"(\$([A-Z_][A-Z0-9_]*|\{[A-Z_][A-Z0-9_]*\}))");
  for (const std::string& word : program) {
    if (std::regex_match(word, before_text)) return;
    std::smatch found;
    if (!std::regex_match(word, found, operators) && !std::regex_search(word, found, variable))
      continue;
    notes.push_back(fmt::format("no shell reads {}; one does in: bash -c {}", found.str(),
                                ssh::quote(fmt::format("{}", fmt::join(program, " ")))));
    return;
  }
}

/// The shell here has made `~` this machine's home folder, and left a `$` in quotes alone.
void note_path(std::string_view flag, const std::string& path, bool is_away,
               std::vector<std::string>& notes) {
  const std::string note = is_away ? note_on_home(fmt::format("{} ", flag), path) : "";
  if (!note.empty()) notes.push_back(note);
  if (path.find('$') != path.npos)
    notes.push_back(fmt::format(
        "{} {} is taken as it is: no shell on the hosts replaces a variable in it", flag, path));
}

}  // namespace

void check_program_words(const RunPlan& plan) {
  const std::vector<std::string>& program = plan.program;
  if (program.empty()) return;
  const std::string& first = program.front();
  const std::size_t equals = first.find('=');
  if (equals != first.npos && is_variable_name(first.substr(0, equals)))
    throw UsageError(fmt::format("{} is no program, and no shell reads it", first),
                     fmt::format("a variable is set before --: --export {}", ssh::quote(first)));
  if (std::ranges::count(kShellWords, first) > 0)
    throw UsageError(
        fmt::format("{} is a command of shells alone, and no shell reads the words", first),
        fmt::format("a line for a shell is one word: -- bash -c '{} …'", first));
  // torchrun's own flags may come first.
  if (first.starts_with("--") && plan.environment.torchrun == Torchrun::no)
    throw UsageError(first + " is no program", "dtool's own flags stand before --");
  if (std::ranges::count(program, "--dry_run") > 0)
    throw UsageError("--dry_run stands after --, so the program would get it and really start",
                     "write it before --; for a program that knows it: -- bash -c 'PROGRAM "
                     "--dry_run'");
  const std::size_t blank = first.find_first_of(" \t\n");
  std::error_code unseen;
  if (blank == first.npos || blank == 0 || first.find('/') < blank || fs::exists(first, unseen))
    return;
  throw UsageError(fmt::format("{} is one word, and names no program", ssh::quote(first)),
                   fmt::format("without the quotes: -- {}; a line for a shell: -- bash -c {}",
                               first, ssh::quote(first)));
}

std::string meant_program(const std::string& name) {
  static const std::vector<std::string> known = {"python3", "torchrun", "accelerate", "deepspeed"};
  const auto meant = killfiles::nearest(name, known);
  // The hosts may have `python` and `python3.12`.
  const bool is_wrong = meant && !meant->starts_with(name) && !name.starts_with(*meant) &&
                        host::find_program(name).empty();
  return is_wrong ? fmt::format("did you mean {}?", *meant) : "";
}

void refuse_windows_lines(const std::string& name, const std::string& script) {
  if (!script.substr(0, script.find('\n')).ends_with('\r')) return;
  throw UsageError(fmt::format("{}: its lines end as on Windows", name),
                   fmt::format("sed -i 's/\\r$//' {} mends them", ssh::quote(name)));
}

void require_executable(const std::string& file) {
  constexpr auto kAny = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  std::error_code unseen;
  if ((fs::status(file, unseen).permissions() & kAny) != fs::perms::none) return;
  throw UsageError(file + " may not be executed",
                   "chmod +x, or name the program that reads it first");
}

void require_script(const RunPlan& plan, const std::vector<std::string>& excludes) {
  if (plan.program.empty()) return;
  const Environment& environment = plan.environment;
  const bool may_be_made = !environment.activate.empty() || !environment.modules.empty() ||
                           environment.container || !environment.requirements.empty();
  const bool is_torchrun = environment.torchrun != Torchrun::no;
  const std::string& first = plan.program.front();
  const auto script = is_torchrun ? std::optional(first) : script_of(plan.program);
  if (!script && !may_be_made) refuse_bare_script(plan);
  if (!script || ssh::is_anchored(*script)) return;
  const fs::path path = fs::path(*script).lexically_normal();
  if (*path.begin() == "..") return;
  const bool is_excluded = tree_sync::Excludes(excludes).match_file(path.string());
  std::error_code unseen;
  if (fs::is_regular_file(path, unseen)) {
    if (is_excluded && !may_be_made && is_away(plan))
      throw UsageError(fmt::format("{} is excluded, so it is not sent", *script),
                       "one that the hosts have already: --no_sync, or its whole path");
    if (is_excluded || is_torchrun || fs::path(first).filename().string().starts_with("python"))
      return;
    const bool is_started = *script == first;
    if (is_started) require_executable(first);
    const std::string text = beginning_of(path);
    if (!is_started || text.starts_with("#!")) refuse_windows_lines(*script, text);
    return;
  }
  if (may_be_made || is_excluded || !is_script(path) || fs::exists(path, unseen) ||
      fs::is_symlink(path, unseen))
    return;
  const auto meant = killfiles::nearest(path.string(), read_code_tree({excludes}).files);
  const char* before = script->starts_with("./") ? "./" : "";
  throw UsageError(fmt::format("{} is not in this folder", *script),
                   (meant ? fmt::format("did you mean {}{}? ", before, *meant) : "") +
                       "one that the hosts have already: --no_sync, --exclude " + *script +
                       ", or its whole path");
}

std::vector<std::string> notes_on_words(const RunPlan& plan, const RunFlags& flags) {
  std::vector<std::string> notes;
  const bool has_others = is_away(plan);
  note_path("--output_dir", flags.run.output_dir, has_others, notes);
  note_path("--code_path", flags.code_path, has_others, notes);
  note_path("--env_activate_path", flags.environment.activate, has_others, notes);
  if (!flags.extra_tag.empty() &&
      plan.run_id.find("_" + flags.extra_tag + "_") == std::string::npos)
    notes.push_back(fmt::format("--extra_tag {} cannot stand in a run's id as it is: the id is {}",
                                ssh::quote(flags.extra_tag), plan.run_id));
  if (plan.program.empty()) return notes;
  const std::string meant = meant_program(plan.program.front());
  if (!meant.empty())
    notes.push_back(fmt::format("{} is no program here; {}", plan.program.front(), meant));
  note_own_flags(plan, notes);
  note_shell_words(plan.program, notes);
  const auto placeholder = find_placeholder(plan.program);
  if (placeholder && !plan.fill)
    notes.push_back(
        fmt::format("{} in the program's words stays as it is; --fill replaces it", *placeholder));
  const auto script = script_of(plan.program);
  if (plan.engine == "ssh" && script && imports_mpi(*script) &&
      (plan.machines.size() > 1 || (flags.nproc_per_node != "auto" && flags.nproc_per_node != "1")))
    notes.push_back(
        fmt::format("{} imports mpi4py, and --launcher ssh starts programs of one MPI rank each; "
                    "--launcher mpi makes them one program",
                    *script));
  return notes;
}

std::string hint_at_cause(const std::string& cause, int processes,
                          const std::vector<std::string>& program) {
  if (program.empty()) return "";
  const auto says = [&cause](std::string_view word) { return cause.find(word) != cause.npos; };
  if (processes == 1 && (says("NCCL") || says("RANK")))
    return "a program may take RANK for several processes on GPUs: --rendezvous never leaves RANK "
           "and the like out";
  constexpr std::string_view kNoModule = "No module named '";
  const std::size_t at = cause.find(kNoModule);
  const auto script = script_of(program);
  if (at == cause.npos || !script || script->find('/') == script->npos) return "";
  std::string module = cause.substr(at + kNoModule.size());
  module.resize(module.find_first_of("'.") == module.npos ? 0 : module.find_first_of("'."));
  std::error_code unseen;
  if (module.empty() || (!fs::exists(module, unseen) && !fs::exists(module + ".py", unseen)))
    return "";
  return fmt::format("{} is in the code folder, and Python looks beside {}: --export PYTHONPATH=.",
                     module, *script);
}

}  // namespace dtool::cli

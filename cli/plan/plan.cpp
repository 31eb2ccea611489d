// SPDX-License-Identifier: MIT
#include "cli/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <ranges>
#include <set>
#include <string_view>
#include <system_error>

#include "cli/action.h"
#include "cli/assignments.h"
#include "cli/scripts.h"
#include "killfiles/killfile.h"
#include "killfiles/nearest.h"
#include "killfiles/whole_file.h"
#include "ssh/quote.h"
#include "ssh/wire/words.h"

namespace dtool::cli {

namespace {

std::string address_and_port(const std::string& address, std::uint16_t port) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(is_v6 ? "[{}]:{}" : "{}:{}"), address, port);
}

std::string folder_of_run(const RunPlan& plan, const MachinePlan& machine) {
  const std::string outputs = outputs_of_run(plan);
  return ssh::is_anchored(outputs) ? outputs : machine.code_folder + "/" + outputs;
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

struct PythonTarget {
  std::string name;
  bool is_module = false;  ///< else a script
};

/// What python is told to run. Nothing if that is text or another program.
std::optional<PythonTarget> python_target(const std::vector<std::string>& program) {
  if (!file_name(program.front()).starts_with("python")) return std::nullopt;
  for (std::size_t i = 1; i < program.size(); ++i) {
    const std::string& word = program[i];
    if (!word.starts_with("-")) return PythonTarget{word};
    if (word == "-") return std::nullopt;
    if (word == "--check-hash-based-pycs") ++i;
    if (word.starts_with("--")) continue;
    // Letters that stand together, as in `-um`; the value of the last one may stand with them.
    const std::size_t at = word.find_first_of("cmWX");
    if (at == word.npos) continue;
    if (word[at] == 'c') return std::nullopt;
    std::string value = word.substr(at + 1);
    if (value.empty() && ++i < program.size()) value = program[i];
    if (word[at] == 'm')
      return value.empty() ? std::nullopt : std::optional(PythonTarget{value, true});
  }
  return std::nullopt;
}

bool is_shell(const std::vector<std::string>& program) {
  constexpr std::array<std::string_view, 5> kShells = {"bash", "sh", "dash", "ksh", "zsh"};
  return std::ranges::count(kShells, file_name(program.front())) > 0;
}

/// What a shell is told to run. Nothing if that is text.
std::optional<std::string> shell_target(const std::vector<std::string>& program) {
  constexpr std::array<std::string_view, 2> kWithValue = {"--rcfile", "--init-file"};
  if (!is_shell(program)) return std::nullopt;
  bool are_options_over = false;
  for (std::size_t i = 1; i < program.size(); ++i) {
    const std::string& word = program[i];
    const bool is_option = word.starts_with('-') || word.starts_with('+');
    if (are_options_over || !is_option) return word;
    are_options_over = word == "--" || word == "-";
    if (std::ranges::count(kWithValue, word) > 0) ++i;
    if (word.starts_with("--")) continue;
    // The command, or the standard input, in place of a script: `-ec TEXT`.
    if (word[0] == '-' && word.find_first_of("cs") != word.npos) return std::nullopt;
    if (word.ends_with('o') || word.ends_with('O')) ++i;  // the name of a setting follows
  }
  return std::nullopt;
}

}  // namespace

void number_ranks(RunPlan& plan) {
  plan.world_size = 0;
  for (MachinePlan& machine : plan.machines) {
    assert(machine.processes >= 0);
    machine.first_rank = plan.world_size;
    plan.world_size += machine.processes;
  }
}

std::optional<std::string> script_of(const std::vector<std::string>& program) {
  if (const auto target = python_target(program))
    return target->is_module ? std::nullopt : std::optional(target->name);
  if (const auto target = shell_target(program)) return target;
  const std::string& first = program.front();
  // Without a slash it is looked for in PATH.
  return first.find('/') != first.npos && !ssh::is_anchored(first) ? std::optional(first)
                                                                   : std::nullopt;
}

std::optional<std::string> module_of(const std::vector<std::string>& program) {
  const auto target = python_target(program);
  return target && target->is_module ? std::optional(target->name) : std::nullopt;
}

bool reads_log_in_files(const std::vector<std::string>& program) {
  if (program.empty() || !is_shell(program)) return false;
  for (std::size_t i = 1; i < program.size() && program[i].starts_with('-'); ++i) {
    const std::string& word = program[i];
    const bool is_long = word.starts_with("--");
    if (word == "--login" || (!is_long && word.find_first_of("li") != word.npos)) return true;
    if (!is_long && word.find('c') != word.npos) return false;
  }
  return false;
}

std::string name_of_program(const std::vector<std::string>& program) {
  const auto target = python_target(program);
  if (target && target->is_module) return target->name;
  std::string name = target ? target->name : program.front();
  if (name.starts_with('-')) {  // torchrun's options come first
    const auto is_script = [](const std::string& word) { return word.ends_with(".py"); };
    const auto script = std::ranges::find_if(program, is_script);
    const auto before = std::ranges::find_if(program, [](const auto& each) {
      return each == "-m" || each == "--module" || each == "--no_python" || each == "--no-python";
    });
    const bool is_named = before != program.end() && before + 1 != program.end();
    name = script != program.end() ? *script : is_named ? before[1] : "torchrun";
  }
  name = file_name(name);
  if (name.ends_with(".py")) name.resize(name.size() - 3);
  return name;
}

std::string listener_of(const RunPlan& plan) {
  return address_and_port(plan.address, plan.port);
}

std::string coordinator_of(const RunPlan& plan) {
  return plan.coordinator_port == 0 ? "" : address_and_port(plan.address, plan.coordinator_port);
}

std::string outputs_of_run(const RunPlan& plan) {
  return plan.output_dir + "/" + (plan.chain.empty() ? plan.run_id : plan.chain.front());
}

std::string run_output_folder(const RunPlan& plan) {
  return folder_of_run(plan, plan.machines.front());
}

std::string output_folder(const RunPlan& plan, const MachinePlan& machine) {
  const std::string folder = folder_of_run(plan, machine);
  return machine.part.empty() ? folder : folder + "/" + machine.part;
}

std::string log_mark(const RunPlan& plan) {
  return plan.chain.empty() ? "" : "." + plan.run_id;
}

ssh::ScreenJob name_job(const RunPlan& plan, const MachinePlan& machine) {
  ssh::ScreenJob job;
  job.run_id = plan.run_id;
  if (machine.leader == Leader::screen)
    job.session = fmt::format("dtool_{}_machine{}", plan.run_id, machine.id);
  job.state_folder = killfiles::state_folder(plan.run_id, machine.id);
  job.host = to_line(machine.identity);
  job.log =
      fmt::format("{}/machine{}{}.log", output_folder(plan, machine), machine.id, log_mark(plan));
  return job;
}

std::string script_variables(const RunPlan& plan, const MachinePlan& machine) {
  std::vector<std::string> processes;
  for (const MachinePlan& each : plan.machines) processes.push_back(std::to_string(each.processes));
  std::string text =
      assign_path("code", machine.code_folder) + assign_path("tree", machine.tree) +
      assign_path("output", output_folder(plan, machine)) +
      assign("is_resumed", plan.chain.empty() ? "no" : "yes") + assign("listener", plan.address) +
      assign("port", std::to_string(plan.port)) + assign("listener_and_port", listener_of(plan)) +
      assign("place", std::to_string(machine.id)) + assign_array("processes_of", processes) +
      assign("git_commit", plan.git_commit) + assign("trainer", machine.trainer) +
      assign("pytorch", machine.pytorch) + assign_array("program", plan.program) +
      assign("fill", plan.fill ? "yes" : "no") + assign("rendezvous", plan.rendezvous) +
      assign("threads", machine.threads == 0 ? "" : std::to_string(machine.threads)) +
      assign("rank", "");
  for (const auto& [row, value, usual] : killfiles::tell(plan)) {
    if (row.is_for_scripts) text += assign(row.name, value.empty() ? usual : value);
  }
  std::vector<std::string> exported;
  text += "export_variables() {\n  :\n";
  for (const auto& [name, value] : plan.variables) {
    // A name without capital letters may be one of the scripts' own variables.
    const bool is_late =
        std::ranges::none_of(name, [](unsigned char c) { return std::isupper(c); });
    const std::string_view before = is_late ? "later[" : "export ";
    text += fmt::format("  {}{}{}={}\n", before, name, is_late ? "]" : "", ssh::quote(value));
    exported.push_back(name);
  }
  if (!plan.gpus.empty()) {
    text += fmt::format("  [ ! -e /sys/class/kfd ] || {{ export {0}={1}; exported+=({0}); }}\n",
                        kAmdsGpus, ssh::quote(plan.gpus));
  }
  text.append("}\n").append(scripts::kWords);
  return text + environment_script(plan.environment, exported);
}

namespace {

constexpr std::string_view kFlag = "--export";
constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

/// A process's place in the run (torchrun's names) is dtool's to say.
bool is_dtools_own(std::string_view name) {
  constexpr std::array<std::string_view, 12> kPlace = {
      "RANK",       "LOCAL_RANK",       "WORLD_SIZE",  "LOCAL_WORLD_SIZE",
      "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",   "ROLE_WORLD_SIZE",
      "NODE_RANK",  "MASTER_ADDR",      "MASTER_PORT", "TORCHELASTIC_RUN_ID",
  };
  return (name.starts_with("DTOOL_") && name != "DTOOL_MNIST_DIR") ||
         std::ranges::find(kPlace, name) != kPlace.end();
}

/// Without the quotes around it; nothing if there is one of two.
std::optional<std::string_view> unquoted(std::string_view value) {
  if (value.empty() || (value.front() != '\'' && value.front() != '"')) return value;
  if (value.size() < 2 || value.back() != value.front()) return std::nullopt;
  return value.substr(1, value.size() - 2);
}

/// Messages about a fault in a line do not show its value.
Variable parse_line(std::string_view line, const std::string& place) {
  const std::size_t equals = line.find('=');
  if (equals == line.npos) throw UsageError(fmt::format("{}: the line is no NAME=VALUE", place));
  std::string_view before = trimmed(line.substr(0, equals));
  // The beginning of lines in files that shells read, too.
  constexpr std::string_view kShell = "export ";
  if (before.starts_with(kShell)) before = trimmed(before.substr(kShell.size()));
  const std::string name(before);
  if (!is_variable_name(name))
    throw UsageError(fmt::format("{}: there is no variable name before the =", place));
  if (is_dtools_own(name))
    throw UsageError(fmt::format("{}: {} is dtool's own to set", place, name));
  const auto value = unquoted(trimmed(line.substr(equals + 1)));
  if (!value)
    throw UsageError(fmt::format("{}: the value of {} begins with a quote and does not end with it",
                                 place, name));
  if (value->find('\0') != value->npos)
    throw UsageError(fmt::format("{}: the value of {} holds a NUL character", place, name));
  return {name, std::string(*value)};
}

/// `GPU-` or `MIG-`; empty: a number.
std::string_view kind_of_gpu(std::string_view entry) {
  return entry.find('-') == entry.npos ? "" : entry.substr(0, 4);
}

}  // namespace

Variable parse_export(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (!is_variable_name(name)) {
    throw UsageError(
        fmt::format("--export: {} is not the name of a variable", name.empty() ? "''" : name));
  }
  if (is_dtools_own(name)) {
    throw UsageError(fmt::format("--export: {} is dtool's own to set", name));
  }
  if (equals != text.npos) return {name, text.substr(equals + 1)};
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) {
    throw UsageError(fmt::format("--export: {} is not set here", name),
                     fmt::format("give it a value: --export {}=…", name));
  }
  return {name, value};
}

std::vector<Variable> parse_env_file(std::string_view text, const std::string& name) {
  std::vector<Variable> variables;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    variables.push_back(parse_line(line, fmt::format("{}:{}", name, number)));
  }
  return variables;
}

Variable parse_gpus(const std::string& list) {
  std::set<std::string> seen;
  std::string first;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string gpu = list.substr(at, comma - at);
    const auto number = host::parse_number<std::uint16_t>(gpu);
    const bool is_uuid = (gpu.starts_with("GPU-") || gpu.starts_with("MIG-")) && gpu.size() > 4 &&
                         gpu.find_first_not_of("0123456789abcdefABCDEFGMIPU-/") == gpu.npos;
    if ((!number || *number >= 1024) && !is_uuid)
      throw UsageError(fmt::format("--gpus: {} names no GPU", gpu.empty() ? "an empty entry" : gpu),
                       "a list of numbers or UUIDs as nvidia-smi -L shows them, such as 0,2");
    if (first.empty()) first = gpu;
    if (kind_of_gpu(gpu) != kind_of_gpu(first))
      throw UsageError(fmt::format("--gpus: {} is not of the kind of {}", gpu, first),
                       "CUDA ends a list where the kind changes: give numbers, or UUIDs of GPUs, "
                       "or a MIG instance");
    if (!seen.insert(number ? std::to_string(*number) : gpu).second)
      throw UsageError(fmt::format("--gpus names {} twice", gpu));
    at = comma + 1;
  }
  return {"CUDA_VISIBLE_DEVICES", list};
}

std::optional<std::string> find_variable(const std::vector<Variable>& variables,
                                         std::string_view name) {
  for (const auto& [each, value] : std::views::reverse(variables)) {
    if (each == name) return value;
  }
  return std::nullopt;
}

std::vector<Variable> read_env_file(const std::string& file) {
  std::error_code unseen;
  if (!std::filesystem::exists(file, unseen))
    throw UsageError(fmt::format("--env_file: there is no file {}", file),
                     killfiles::nearest_file(file));
  try {
    return parse_env_file(killfiles::read_whole(file), file);
  } catch (const std::system_error& fault) {
    throw UsageError(fmt::format("--env_file: {}", fault.what()));
  }
}

std::vector<std::string> without_values(std::vector<std::string> command_line) {
  bool is_value = false;
  for (std::string& word : command_line) {
    if (word == "--") break;  // the program's own words
    std::size_t name = is_value ? 0 : word.npos;
    if (!is_value && word.starts_with(kFlag) && word.substr(kFlag.size()).starts_with('='))
      name = kFlag.size() + 1;
    is_value = !is_value && word == kFlag;
    const std::size_t equals = name == word.npos ? word.npos : word.find('=', name);
    if (equals != word.npos) word = word.substr(0, equals + 1).append(kHiddenValue);
  }
  return command_line;
}

std::vector<Variable> without_values(std::vector<Variable> variables) {
  for (Variable& each : variables) each.second = kHiddenValue;
  return variables;
}

}  // namespace dtool::cli

// SPDX-License-Identifier: MIT
#include "cli/plan/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/action.h"
#include "cli/options.h"
#include "cli/scripts.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// `SRC` or `SRC:DST`.
Bind parse_bind(const std::string& text) {
  const std::size_t colon = text.find(':');
  Bind bind{text.substr(0, colon), colon == text.npos ? text : text.substr(colon + 1)};
  if (bind.target.find(':') != text.npos) {
    throw UsageError(fmt::format("--bind {}: more than one colon", text),
                     "SRC or SRC:DST; what is bound can be written to as far as the host allows");
  }
  for (const std::string& path : {bind.source, bind.target}) {
    if (ssh::is_anchored(path)) continue;
    throw UsageError(
        fmt::format("--bind {}: '{}' does not say where it begins", text, path),
        fmt::format("a path from / or ~/; the code and output folders are bound anyway"));
  }
  return bind;
}

/// In the order of ContainerRuntime.
constexpr std::array kRuntimes = {"apptainer", "podman", "charliecloud"};

ContainerRuntime runtime_named(std::string_view name) {
  return static_cast<ContainerRuntime>(std::ranges::find(kRuntimes, name) - kRuntimes.begin());
}

/// By what the image looks like, so that it is the same on every host: *.sif is Apptainer's, other
/// paths are folders or SquashFS files of Charliecloud's, and a name is one of podman's.
ContainerRuntime runtime_for(const std::string& image) {
  if (image.ends_with(".sif")) return ContainerRuntime::apptainer;
  const bool is_path = ssh::is_anchored(image) || image.starts_with("./") ||
                       image.starts_with("../") || image.ends_with(".sqfs") ||
                       image.ends_with(".squashfs");
  return is_path ? ContainerRuntime::charliecloud : ContainerRuntime::podman;
}

Container make_container(const std::string& image, const std::string& runtime,
                         const std::vector<std::string>& binds) {
  if (image.find("://") != image.npos) {
    throw UsageError(
        fmt::format("--container {}: an image has to be on the hosts before", image),
        fmt::format("dtool command --command 'apptainer pull image.sif {}' fetches it to each, or "
                    "'podman pull NAME' for podman",
                    image));
  }
  Container container;
  container.runtime = runtime.empty() ? runtime_for(image) : runtime_named(runtime);
  container.image = image;
  for (const std::string& text : binds) container.binds.push_back(parse_bind(text));
  return container;
}

std::string array_of(std::string_view name, const std::vector<std::string>& quoted) {
  return fmt::format("{}=({})\n", name, fmt::join(quoted, " "));
}

bool is_sent(std::string path, const std::string& code_folder) {
  if (path.starts_with(code_folder + "/")) path.erase(0, code_folder.size() + 1);
  std::error_code unseen;
  return !path.empty() && !ssh::is_anchored(path) && std::filesystem::exists(path, unseen);
}

bool has_sent_image(const std::optional<Container>& container, const std::string& code_folder) {
  return container && container->runtime != ContainerRuntime::podman &&
         is_sent(container->image, code_folder);
}

}  // namespace

void add_environment_flags(Options& command, EnvironmentFlags& flags) {
  command.add_option("--env_activate_path PATH", flags.activate,
                     "on the hosts: a script to source first, or the folder of a virtual or conda "
                     "environment");
  command.add_option(
      "--modules NAMES", flags.modules,
      "environment modules to load on the hosts, after a purge: 'cuda/12 python/3.11'");
  command.add_option("--container IMAGE", flags.container,
                     "run inside this image: a path on the hosts, or the name of a podman image");
  command
      .add_option("--container_engine ENGINE", flags.container_engine,
                  "apptainer, podman or charliecloud (by the kind of image)")
      .one_of({"apptainer", "podman", "charliecloud"});
  command.add_option(
      "--bind SRC[:DST]", flags.binds,
      "bind a host's folder into the container, at the same path or at DST; repeatable");
  command.add_flag("--torchrun", flags.torchrun,
                   "the program is a Python script, and torchrun starts its processes");
}

void check_torchrun(const Environment& environment, const std::vector<std::string>& program) {
  if (environment.torchrun == Torchrun::no) return;
  if (program.empty())
    throw UsageError("--torchrun wants a script to run",
                     "dtool run --torchrun -- train.py --lr 0.1");
  const std::string name = std::filesystem::path(program.front()).filename();
  if (!name.starts_with("python") || name.find_first_not_of("0123456789.", 6) != name.npos) return;
  throw UsageError(fmt::format("--torchrun starts Python itself: leave {} away", program.front()),
                   "dtool run --torchrun -- train.py --lr 0.1");
}

const char* name_of(ContainerRuntime runtime) {
  return kRuntimes[static_cast<std::size_t>(runtime)];
}

Environment make_environment(const EnvironmentFlags& flags, const Settings& settings) {
  const auto use = [](const std::string& flag, const std::optional<std::string>& setting) {
    return flag.empty() ? setting.value_or("") : flag;
  };
  Environment environment;
  environment.activate = use(flags.activate, settings.env_activate_path);
  environment.modules = split_words(use(flags.modules, settings.modules));
  for (const std::string& name : environment.modules) {
    if (name.starts_with('-')) throw UsageError(fmt::format("--modules: {} is no module", name));
  }
  environment.torchrun = flags.torchrun ? Torchrun::yes : Torchrun::no;
  const std::string image = use(flags.container, settings.container);
  if (image.empty()) {
    if (!flags.container_engine.empty() || !flags.binds.empty())
      throw UsageError("--container_engine and --bind are of use with a container alone",
                       "--container names its image");
    return environment;
  }
  std::vector<std::string> binds = settings.bind;
  binds.insert(binds.end(), flags.binds.begin(), flags.binds.end());
  environment.container =
      make_container(image, use(flags.container_engine, settings.container_engine), binds);
  return environment;
}

Environment without_sent(Environment environment, const std::string& code_folder) {
  if (is_sent(environment.activate, code_folder)) environment.activate.clear();
  if (has_sent_image(environment.container, code_folder)) environment.container.reset();
  return environment;
}

bool has_sent(const Environment& environment, const std::string& code_folder) {
  return is_sent(environment.activate, code_folder) ||
         has_sent_image(environment.container, code_folder);
}

std::string environment_script(const Environment& environment,
                               const std::vector<std::string>& exported) {
  const auto& container = environment.container;
  std::vector<std::string> binds;
  std::string image = "''";
  if (container) {
    const bool is_name = container->runtime == ContainerRuntime::podman;
    image = is_name ? ssh::quote(container->image) : ssh::quote_path(container->image);
    for (const Bind& bind : container->binds) {
      binds.push_back(ssh::quote_path(bind.source));
      binds.push_back(ssh::quote_path(bind.target));
    }
  }
  const std::string& activate = environment.activate;
  std::string text = fmt::format("modules=({})\nactivate={}\n", ssh::quote_all(environment.modules),
                                 activate.empty() ? "''" : ssh::quote_path(activate));
  text += fmt::format("engine={}\nimage={}\ntorchrun={}\n",
                      container ? name_of(container->runtime) : "''", image,
                      environment.torchrun == Torchrun::yes ? "yes" : "no");
  text += array_of("binds", binds) + array_of("exported", exported);
  text.append(scripts::kSoftware);
  if (container) text.append(scripts::kContainer);
  if (environment.torchrun == Torchrun::yes) text.append(scripts::kTorchrun);
  return text;
}

nlohmann::json to_json(const Environment& environment) {
  nlohmann::json json = nlohmann::json::object();
  if (!environment.modules.empty()) json["modules"] = environment.modules;
  if (!environment.activate.empty()) json["env_activate_path"] = environment.activate;
  if (!environment.requirements.empty()) json["environment"] = environment.requirements;
  if (environment.torchrun == Torchrun::yes) json["torchrun"] = true;
  if (!environment.container) return json;
  json["container"] = environment.container->image;
  json["container_engine"] = name_of(environment.container->runtime);
  json["bind"] = nlohmann::json::array();
  for (const Bind& bind : environment.container->binds)
    json["bind"].push_back(bind.source + ":" + bind.target);
  return json;
}

std::vector<std::pair<std::string, std::string>> rows_of(const Environment& environment) {
  std::vector<std::pair<std::string, std::string>> rows;
  if (!environment.modules.empty())
    rows.emplace_back("modules", fmt::format("{}", fmt::join(environment.modules, " ")));
  if (!environment.requirements.empty())
    rows.emplace_back("packages", "those of " + environment.requirements);
  if (!environment.activate.empty()) rows.emplace_back("activate", environment.activate);
  if (environment.container) {
    const Container& container = *environment.container;
    rows.emplace_back("container",
                      fmt::format("{} ({})", container.image, name_of(container.runtime)));
    for (const Bind& bind : container.binds)
      rows.emplace_back("binds", bind.source == bind.target
                                     ? bind.source
                                     : fmt::format("{} at {}", bind.source, bind.target));
  }
  if (environment.torchrun == Torchrun::yes) rows.emplace_back("torchrun", "starts the processes");
  return rows;
}

}  // namespace dtool::cli

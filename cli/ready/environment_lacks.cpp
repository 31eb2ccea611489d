// SPDX-License-Identifier: MIT
#include "cli/ready/environment_lacks.h"

#include <fmt/format.h>

#include <sstream>
#include <string>

#include "cli/ready/program_lacks.h"
#include "killfiles/nearest.h"
#include "ssh/quote.h"
#include "ssh/remote.h"
#include "ssh/script.h"

namespace dtool::cli {
namespace {

using ssh::Answers;

/// The modules of that name in other versions, else the one nearest to it.
std::string hint_at_module(const std::string& name, const std::string& known) {
  constexpr std::size_t kMost = 8;
  std::istringstream stream(known);
  std::vector<std::string> all;
  std::vector<std::string> versions;
  const std::string base = name.substr(0, name.find('/'));
  for (std::string each; stream >> each; all.push_back(each)) {
    if (each == name) return "";  // it is there, and fails
    if (each == base || each.starts_with(base + "/")) versions.push_back(each);
  }
  if (versions.size() > kMost) versions.resize(kMost);
  if (!versions.empty()) return fmt::format("there is {}", fmt::join(versions, ", "));
  if (const auto near = killfiles::nearest(name, all))
    return fmt::format("did you mean {}?", *near);
  return "module avail, on the host, lists what there is";
}

void add_module_lacks(const Answers& answers, std::string_view package_manager,
                      std::vector<Lack>& lacks) {
  if (answers.contains("bad_no_module")) {
    lacks.push_back({"modules", "--modules: the command module is not there",
                     install_hint(package_manager, {"module"})});
  }
  const auto fault = ssh::find_answer(answers, "bad_modules");
  if (!fault) return;
  const auto name = ssh::find_answer(answers, "missing_module");
  const std::string known = ssh::find_answer(answers, "known_modules").value_or("");
  lacks.push_back(
      {"modules", "--modules: " + *fault, name ? hint_at_module(*name, known) : std::string()});
}

constexpr const char* kHintAtEnvironment =
    "a virtual environment serves the machine and the folder in which it was made; --environment "
    "requirements.txt makes one on each host";
constexpr const char* kHintAtCode = "it is in the current folder, which dtool run sends";

std::string hint_at_activation(const Needs& needs) {
  if (needs.environment_comes_later) return kHintAtCode;
  const std::string& path = needs.environment.activate;
  if (!path.empty() && !ssh::is_anchored(path))
    return fmt::format("{} begins at the code folder there; ~/{} would begin at the home folder",
                       path, path);
  return "dtool config runs a script that makes it";
}

std::string hint_at_image(const std::string& image, const Needs& needs) {
  const auto& container = needs.environment.container;
  if (needs.environment_comes_later && container && !ssh::is_anchored(container->image))
    return kHintAtCode;
  if (image.starts_with('/'))
    return "a path is looked for on each host; one that is relative, in the code folder";
  return fmt::format("dtool command --command 'podman pull {}' --runs_on {}", image,
                     ssh::kHostsInHint);
}

void add_activation_lacks(const Answers& answers, const Needs& needs, std::vector<Lack>& lacks) {
  if (const auto fault = ssh::find_answer(answers, "bad_no_file"))
    lacks.push_back({"activate", "--env_activate_path: " + *fault, hint_at_activation(needs)});
  if (const auto fault = ssh::find_answer(answers, "bad_environment"))
    lacks.push_back({"activate", "--env_activate_path: " + *fault, kHintAtEnvironment});
  if (const auto fault = ssh::find_answer(answers, "bad_activate"))
    lacks.push_back({"activate", "--env_activate_path: " + *fault, ""});
}

std::string hint_at_engine(std::string_view package_manager, const std::string& program) {
  if (program == "apptainer")
    return "Debian has no package of it: apptainer.org has one; --container_engine names another "
           "engine";
  return install_hint(package_manager, {program});
}

void add_container_lacks(const Answers& answers, std::string_view package_manager,
                         const Needs& needs, std::vector<Lack>& lacks) {
  if (const auto program = ssh::find_answer(answers, "bad_no_engine")) {
    lacks.push_back({"container", fmt::format("--container: {} is not there", *program),
                     hint_at_engine(package_manager, *program)});
  }
  if (const auto image = ssh::find_answer(answers, "bad_no_image")) {
    lacks.push_back({"container", fmt::format("--container: there is no image {}", *image),
                     hint_at_image(*image, needs)});
  }
  if (const auto fault = ssh::find_answer(answers, "bad_container"))
    lacks.push_back({"container", "--container: " + *fault, ""});
  const auto [begin, end] = answers.equal_range("no_bind");
  for (auto each = begin; each != end; ++each)
    lacks.push_back({"container", fmt::format("--bind: there is no {}", each->second), ""});
}

}  // namespace

std::string unseen_container(const Answers& answers) {
  if (const auto program = ssh::find_answer(answers, "unseen_no_engine"))
    return *program + " is not there";
  if (const auto image = ssh::find_answer(answers, "unseen_no_image"))
    return "there is no image " + *image;
  return ssh::find_answer(answers, "unseen_container").value_or("");
}

std::vector<std::string> left_out_variables(const Answers& answers) {
  std::vector<std::string> variables;
  const auto [begin, end] = answers.equal_range("left_out");
  for (auto each = begin; each != end; ++each) variables.push_back(each->second);
  return variables;
}

std::vector<Lack> environment_lacks(const Answers& answers, std::string_view package_manager,
                                    const Needs& needs) {
  std::vector<Lack> lacks;
  add_module_lacks(answers, package_manager, lacks);
  add_activation_lacks(answers, needs, lacks);
  add_container_lacks(answers, package_manager, needs, lacks);
  return lacks;
}

}  // namespace dtool::cli

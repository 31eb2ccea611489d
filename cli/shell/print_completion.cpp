// SPDX-License-Identifier: MIT
// `dtool completion`: prints the script that completes dtool's commands in a shell.
#include <map>
#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/completion_scripts.h"
#include "cli/options.h"

namespace dtool::cli {
namespace {

class CompletionAction : public Action {
 public:
  void add_options(Options& command) override;
  int run(Invocation& invocation) override;

 private:
  std::string shell_;
};

void CompletionAction::add_options(Options& command) {
  command.add_option("SHELL", shell_, "bash, zsh or fish")
      .one_of({"bash", "zsh", "fish"})
      .required();
}

int CompletionAction::run(Invocation& invocation) {
  const std::map<std::string, std::string_view> scripts = {
      {"bash", completion_scripts::kBash_completion},
      {"zsh", completion_scripts::kZsh_completion},
      {"fish", completion_scripts::kFish_completion}};
  if (invocation.console.json()) {
    invocation.console.document({{"shell", shell_}, {"script", scripts.at(shell_)}});
  } else {
    invocation.console.write(scripts.at(shell_));
  }
  return kAllWell;
}

}  // namespace

std::unique_ptr<Action> make_completion() {
  return std::make_unique<CompletionAction>();
}

}  // namespace dtool::cli

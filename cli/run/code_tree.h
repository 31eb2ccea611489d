// Sends the current folder, and the trainer, to the hosts of a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/run/trainer_bundle.h"
#include "ssh/host.h"
#include "ssh/remote.h"
#include "sync/push.h"
#include "sync/tree.h"

namespace dtool::cli {

/// The folder for the code on `host`: `code_path` if it is given; empty for `local`, where the code
/// stays in place; else the same path below the home folder, or `~/NAME`.
std::string code_folder(const ssh::Host& host, const std::string& code_path);

/// Throws UsageError if the current folder is the home folder or `/`.
void require_code_tree();

/// The files of the current folder, without those that match `excludes`, the output folder and the
/// paths `secrets`. Throws as require_code_tree().
tree_sync::Tree read_code_tree(std::vector<std::string> excludes, const std::string& output_dir,
                               const std::vector<std::string>& secrets);

/// The commit that is checked out in the current folder, from git_commit (sync/git_files.h).
std::string commit_of_code_tree(const std::string& output_dir);

/// What is sent, in the words of messages, and how.
struct Sending {
  std::string what = "the code";
  tree_sync::Relay relay = tree_sync::Relay::no;
  tree_sync::Foreign foreign = tree_sync::Foreign::refuse;
};

/// Sends a tree to hosts and shows the progress. All arguments must outlive it.
class TreePush {
 public:
  TreePush(Console& console, const std::vector<ssh::Host>& hosts, const tree_sync::Tree& tree,
           const std::vector<tree_sync::Destination>& destinations, Sending sending);
  ~TreePush();

  /// The push's tasks for the hosts.
  tree_sync::Pushing& steps() { return *steps_; }

  /// Call it when all hosts have gone through the steps: continues with those that had to wait for
  /// another host.
  std::vector<ssh::HostResult> finish(ssh::Remote& remote);

 private:
  class Reporter;
  void note_missed() const;

  Console& console_;
  const std::vector<ssh::Host>& hosts_;
  std::string what_;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<tree_sync::Pushing> steps_;
};

/// Sends the bundle to the hosts at those places among the Remote's.
std::vector<ssh::HostResult> send_trainer(Console& console, ssh::Remote& remote,
                                          const TrainerBundle& bundle,
                                          const std::vector<std::size_t>& places);

}  // namespace dtool::cli

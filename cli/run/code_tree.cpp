#include "cli/run/code_tree.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "cli/action.h"
#include "cli/failures.h"
#include "cli/run/sending_progress.h"
#include "cli/terminal_text.h"
#include "ssh/machine/home_folder.h"
#include "ssh/quote.h"
#include "sync/git_files.h"

namespace dtool::cli {
namespace {

std::filesystem::path home() {
  return std::filesystem::weakly_canonical(ssh::home_folder());
}

std::filesystem::path current_folder() {
  std::error_code error;
  std::filesystem::path here = std::filesystem::current_path(error);
  if (error) throw UsageError("the current folder was deleted", "change into the code's folder");
  return here;
}

/// The pattern of --exclude that takes this file of the tree alone.
std::string exactly(const std::filesystem::path& file) {
  std::string pattern = "/";
  for (const char each : file.string()) {
    const bool is_special = each == '*' || each == '?' || each == '[' || each == '\\';
    pattern += is_special ? fmt::format("\\{}", each) : std::string(1, each);
  }
  return pattern;
}

/// The output folder, relative to the current one; empty if it is not inside.
std::string outputs_inside(const std::string& output_dir) {
  const std::filesystem::path output = std::filesystem::path(output_dir + "/").lexically_normal();
  const bool is_inside = output.is_relative() && *output.begin() != ".." && *output.begin() != "~";
  return is_inside ? output.string() : "";
}

}  // namespace

std::string code_folder(const ssh::Host& host, const std::string& code_path) {
  const std::filesystem::path here = current_folder();
  if (!code_path.empty()) return ssh::is_anchored(code_path) ? code_path : "~/" + code_path;
  if (host.is_local) return here;
  const std::filesystem::path inside = here.lexically_relative(home());
  const bool is_inside = !inside.empty() && inside != "." && *inside.begin() != "..";
  return "~/" + (is_inside ? inside : here.filename()).string();
}

void require_code_tree() {
  const std::filesystem::path here = current_folder();
  if (here == home() || here == here.root_path()) {
    throw UsageError(fmt::format("the current folder {} is no code tree to send", here.string()),
                     "change into the tree's folder, or give --no_sync");
  }
}

tree_sync::Tree read_code_tree(std::vector<std::string> excludes, const std::string& output_dir,
                               const std::vector<std::string>& secrets) {
  require_code_tree();
  const std::filesystem::path here = current_folder();
  for (const std::string& file : secrets) {
    const auto inside = std::filesystem::weakly_canonical(file).lexically_relative(here);
    if (!inside.empty() && *inside.begin() != "..") excludes.push_back(exactly(inside));
  }
  const std::string outputs = outputs_inside(output_dir);
  if (!outputs.empty()) excludes.push_back("/" + outputs);
  return tree_sync::read_tree(here, excludes);
}

std::string commit_of_code_tree(const std::string& output_dir) {
  return tree_sync::git_commit(std::filesystem::current_path(), outputs_inside(output_dir));
}

class TreePush::Reporter : public tree_sync::PushListener {
 public:
  Reporter(Console& console, std::string what, std::size_t hosts)
      : console_(console), sending_(std::move(what), hosts) {}

  void leave_out(std::size_t host) { sending_.done(host); }

  void on_sent(std::size_t host, const ssh::Transferred& sent) override {
    const auto now = SendingProgress::Clock::now();
    sending_.sent(host, sent, now);
    if (now - shown_ < kShowEvery) return;
    shown_ = now;
    console_.progress(sending_.line(now));
  }
  void on_result(std::size_t host, const ssh::HostResult&, const tree_sync::Pushed&) override {
    sending_.done(host);
    console_.progress(sending_.line(SendingProgress::Clock::now()));
  }
  void on_interrupt(const std::vector<std::size_t>&) override {
    console_.note("interrupted: nothing is started");
  }

 private:
  /// A thousand hosts tell of twenty thousand pieces, and the line is about all of them.
  static constexpr std::chrono::milliseconds kShowEvery{50};

  Console& console_;
  SendingProgress sending_;
  SendingProgress::Clock::time_point shown_ = {};
};

TreePush::TreePush(Console& console, const std::vector<ssh::Host>& hosts,
                   const tree_sync::Tree& tree,
                   const std::vector<tree_sync::Destination>& destinations, Sending sending)
    : console_(console),
      hosts_(hosts),
      what_(sending.what),
      reporter_(std::make_unique<Reporter>(console, sending.what, hosts.size())) {
  std::vector<bool> gets_it(hosts.size());
  for (const tree_sync::Destination& each : destinations) gets_it.at(each.host) = true;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (!gets_it[i]) reporter_->leave_out(i);
  steps_ = tree_sync::make_push(hosts, tree, destinations, *reporter_, {}, sending.relay,
                                sending.foreign);
}

TreePush::~TreePush() = default;

std::vector<ssh::HostResult> TreePush::finish(ssh::Remote& remote) {
  auto results = steps_->finish(remote);
  console_.progress("");
  note_missed();
  return results;
}

/// One line, however many hosts it was: of the reasons the first few.
void TreePush::note_missed() const {
  constexpr std::size_t kReasons = 3;
  constexpr std::size_t kLongest = 200;  // bytes of what a host says
  std::set<std::size_t> indices;
  std::set<std::string> reasons;
  std::string told;
  for (const tree_sync::Missed& each : steps_->missed()) {
    indices.insert(each.host);
    const bool is_new = reasons.insert(each.reason).second;
    if (!is_new || reasons.size() > kReasons) continue;
    told += fmt::format("{}{}: {}", told.empty() ? "" : "; ", ssh::to_string(hosts_.at(each.host)),
                        without_controls(each.reason).substr(0, kLongest));
  }
  if (indices.empty()) return;
  std::vector<ssh::Host> hosts;
  for (const std::size_t index : indices) hosts.push_back(hosts_.at(index));
  console_.note(
      fmt::format("{}: {} was not passed on there as planned, and came another way ({}{})",
                  fold_hosts_in_short(hosts), what_, told, reasons.size() > kReasons ? "; …" : ""));
}

std::vector<ssh::HostResult> send_trainer(Console& console, ssh::Remote& remote,
                                          const TrainerBundle& bundle,
                                          const std::vector<std::size_t>& places) {
  const tree_sync::Tree tree = make_tree(bundle);
  std::vector<tree_sync::Destination> destinations;
  for (const std::size_t place : places) destinations.push_back({place, folder_of(bundle)});
  // So many bytes that a host which cannot be passed them costs little beside.
  const auto relay = places.size() > 2 ? tree_sync::Relay::yes : tree_sync::Relay::no;
  // Part of a bundle whose sending was interrupted is no edit of the user's.
  TreePush push(console, remote.hosts(), tree, destinations,
                {"the trainer", relay, tree_sync::Foreign::overwrite});
  std::vector<ssh::Task> tasks;
  for (const std::size_t place : places) tasks.push_back(push.steps().first_task(place));
  remote.run(std::move(tasks), push.steps(), {});
  return push.finish(remote);
}

}  // namespace dtool::cli

#include "sync/push.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <charconv>
#include <map>
#include <stdexcept>
#include <utility>

#include "ssh/quote.h"
#include "ssh/read_file.h"
#include "ssh/script.h"
#include "sync/scripts.h"

namespace dtool::tree_sync {
namespace {

/// What both scripts start with.
std::string preamble(const Tree& tree, const std::string& folder, const std::string& fingerprint) {
  std::string text(ssh::answer_function());
  text += fmt::format("destination={}\ntree={}\nnames() {{ printf '%s\\0'", ssh::quote_path(folder),
                      ssh::quote(fingerprint));
  for (const std::string& file : tree.files) text += " " + ssh::quote(file);
  text += "; }\n";
  return text.append(scripts::kManifest);
}

/// By what prepare.sh knows the tree's own folder.
std::string identity(const Tree& tree) {
  struct stat root {};
  struct statfs file_system {};
  struct stat first {};
  ::stat(tree.root.c_str(), &root);
  ::statfs(tree.root.c_str(), &file_system);
  ::lstat((tree.root / tree.files.front()).c_str(), &first);
  return fmt::format(
      "root_boot={}\nroot_device={}\nroot_inode={}\nroot_type={:x}\nfirst={}\n"
      "first_identity='{} {} {}.{:09}'\n",
      ssh::quote(ssh::boot_id()), root.st_dev, root.st_ino,
      static_cast<std::uint32_t>(file_system.f_type), ssh::quote(tree.files.front()), first.st_ino,
      first.st_size, first.st_ctim.tv_sec, first.st_ctim.tv_nsec);
}

enum class Step { prepare, send, prune, done };

/// One host on its way through the steps.
struct Slot {
  Destination destination;
  Step step = Step::prepare;
  bool is_to_prune = false;
  std::string lock = {};
  ssh::HostResult result = {};
  Pushed pushed = {};
  ProgressReader progress = {};
  std::string out_tail = {};  ///< of rsync, whose progress on a large tree would fill the memory
  std::string err = {};
};

class Push : public Pushing {
 public:
  Push(const std::vector<ssh::Host>& hosts, const Tree& tree,
       const std::vector<Destination>& destinations, PushListener& listener,
       const ssh::TaskOptions& options);

  ssh::Task first_task(std::size_t host) const override { return task(*by_host_.at(host)); }
  std::vector<ssh::HostResult> results() override;

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_interrupt(const std::vector<std::size_t>& running) override;

 private:
  ssh::Task task(const Slot& slot) const;
  Step next_step(Slot& slot) const;

  const std::vector<ssh::Host>& hosts_;
  const Tree& tree_;
  const std::string fingerprint_;
  PushListener& listener_;
  const ssh::TaskOptions options_;
  std::vector<Slot> slots_;
  std::map<std::size_t, Slot*> by_host_;
};

Push::Push(const std::vector<ssh::Host>& hosts, const Tree& tree,
           const std::vector<Destination>& destinations, PushListener& listener,
           const ssh::TaskOptions& options)
    : hosts_(hosts),
      tree_(tree),
      fingerprint_(fingerprint(tree)),
      listener_(listener),
      options_(options) {
  for (const Destination& destination : destinations) {
    const std::string& folder = destination.folder;
    if (!folder.starts_with('/') && !folder.starts_with("~/") && folder != "~") {
      throw std::invalid_argument(
          fmt::format("the folder '{}' on the hosts must start with / or ~/", folder));
    }
    slots_.push_back({destination});
  }
  for (Slot& slot : slots_) {
    if (!by_host_.emplace(slot.destination.host, &slot).second) {
      throw std::invalid_argument(
          fmt::format("two destinations on {}", ssh::to_string(hosts.at(slot.destination.host))));
    }
  }
}

std::vector<ssh::HostResult> Push::results() {
  std::vector<ssh::HostResult> results;
  for (Slot& slot : slots_) results.push_back(std::move(slot.result));
  return results;
}

ssh::Task Push::task(const Slot& slot) const {
  const auto& [host, folder] = slot.destination;
  const ssh::TaskOptions kept{options_.timeout, ssh::KeepOutput::yes};
  if (slot.step == Step::prepare) return {host, prepare_command(tree_, folder, fingerprint_), kept};
  if (slot.step == Step::prune) return {host, prune_command(tree_, folder, fingerprint_), kept};
  const Link link = hosts_.at(host).is_local ? Link::local : Link::network;
  const Turn turn{slot.lock, fingerprint_};
  const ssh::TaskOptions not_kept{options_.timeout, ssh::KeepOutput::no};
  return {host, push_program(tree_, folder, link, turn), not_kept};
}

void Push::on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) {
  Slot& slot = *by_host_.at(host);
  if (slot.step != Step::send) return;
  if (stream == ssh::Stream::err) {
    slot.err += bytes;
    return;
  }
  constexpr std::size_t kTail = 4096;  // rsync's figures at the end take 700 bytes
  slot.out_tail += bytes;
  if (slot.out_tail.size() > 2 * kTail) slot.out_tail.erase(0, slot.out_tail.size() - kTail);
  listener_.on_bytes(host, slot.progress.add(bytes).sent.bytes);
}

std::optional<ssh::NextTask> Push::next_task(std::size_t host, const ssh::HostResult& result) {
  Slot& slot = *by_host_.at(host);
  slot.result = result;
  if (slot.step == Step::send) slot.result.err = slot.err;
  slot.step = next_step(slot);
  slot.result.out.clear();
  if (slot.step == Step::done) return std::nullopt;
  return ssh::NextTask{task(slot)};
}

void Push::on_result(std::size_t host, const ssh::HostResult& result) {
  Slot& slot = *by_host_.at(host);
  if (slot.step != Step::done) slot.result = result;  // it came to no further step
  listener_.on_result(host, slot.result, slot.pushed);
}

void Push::on_interrupt(const std::vector<std::size_t>& running) {
  listener_.on_interrupt(running);
}

Step Push::next_step(Slot& slot) const {
  if (slot.step == Step::prepare) {
    const auto lock = ssh::find_answer(ssh::read_answers(slot.result.out), "lock");
    slot.lock = lock.value_or("");
    const auto prepared = read_prepared(slot.result);
    slot.pushed.is_the_tree = prepared == Prepared::same_folder;
    slot.is_to_prune = prepared == Prepared::to_prune;
    return !prepared || slot.pushed.is_the_tree ? Step::done : Step::send;
  }
  if (slot.step == Step::send) {
    explain(slot.result);
    slot.pushed.sent = read_sent(slot.out_tail);
    return slot.result.ok() && slot.is_to_prune ? Step::prune : Step::done;
  }
  slot.pushed.removed = read_pruned(slot.result).value_or(0);
  return Step::done;
}

}  // namespace

std::optional<std::multimap<std::string, std::string>> answers_of(ssh::HostResult& result) {
  if (result.failure != ssh::Failure::none) return std::nullopt;
  auto answers = ssh::read_answers(result.out);
  const auto error = ssh::find_answer(answers, "error");
  if (!error && result.exit_code == 0) return answers;
  if (result.exit_code == 0) result.exit_code = 1;
  if (error) {
    result.error = *error;
    result.hint = ssh::find_answer(answers, "hint").value_or("");
  } else if (result.exit_code == 127) {
    result.error = "bash is not installed";
    result.hint = "apt-get install bash";
  } else {
    result.error =
        fmt::format("the script ended with exit code {}: {}", result.exit_code, result.err);
  }
  return std::nullopt;
}

std::string fingerprint(const Tree& tree) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto mix = [&hash](std::string_view bytes) {
    for (const char each : bytes) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3U;
  };
  for (const std::string& file : tree.files) {
    struct stat status {};
    ::lstat((tree.root / file).c_str(), &status);
    mix(fmt::format("{}/{} {}.{:09}/", file, status.st_size, status.st_mtim.tv_sec,
                    status.st_mtim.tv_nsec));
  }
  return fmt::format("{:016x}", hash);
}

ssh::Command prepare_command(const Tree& tree, const std::string& folder,
                             const std::string& fingerprint) {
  return ssh::bash(preamble(tree, folder, fingerprint) + identity(tree).append(scripts::kPrepare));
}

std::optional<Prepared> read_prepared(ssh::HostResult& result) {
  const auto answers = answers_of(result);
  if (!answers) return std::nullopt;
  if (ssh::find_answer(*answers, "folder") == "same") return Prepared::same_folder;
  const auto prune = ssh::find_answer(*answers, "prune");
  if (prune) return *prune == "no" ? Prepared::nothing_to_prune : Prepared::to_prune;
  result.exit_code = 1;
  result.error = "the script's answer did not come: " + result.err;
  return std::nullopt;
}

ssh::Command prune_command(const Tree& tree, const std::string& folder,
                           const std::string& fingerprint) {
  return ssh::bash(preamble(tree, folder, fingerprint).append(scripts::kPrune));
}

std::optional<std::size_t> read_pruned(ssh::HostResult& result) {
  const auto answers = answers_of(result);
  if (!answers) return std::nullopt;
  const std::string removed = ssh::find_answer(*answers, "removed").value_or("");
  std::size_t number = 0;
  const auto read = std::from_chars(removed.data(), removed.data() + removed.size(), number);
  if (read.ec == std::errc()) return number;
  result.exit_code = 1;
  result.error = "the script's answer did not come: " + result.err;
  return std::nullopt;
}

std::unique_ptr<Pushing> make_push(const std::vector<ssh::Host>& hosts, const Tree& tree,
                                   const std::vector<Destination>& destinations,
                                   PushListener& listener, const ssh::TaskOptions& options) {
  return std::make_unique<Push>(hosts, tree, destinations, listener, options);
}

std::vector<ssh::HostResult> push(ssh::Remote& remote, const Tree& tree,
                                  const std::vector<Destination>& destinations,
                                  PushListener& listener, const ssh::RunOptions& options) {
  const auto pushing = make_push(remote.hosts(), tree, destinations, listener, options);
  std::vector<ssh::Task> tasks;
  for (const Destination& each : destinations) tasks.push_back(pushing->first_task(each.host));
  remote.run(std::move(tasks), *pushing, options);
  return pushing->results();
}

}  // namespace dtool::tree_sync

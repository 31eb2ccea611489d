// SPDX-License-Identifier: MIT
#include "sync/push.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <utility>

#include "ssh/machine/random_hex.h"
#include "ssh/quote.h"
#include "sync/contents.h"
#include "sync/listing.h"
#include "sync/package.h"
#include "sync/package_writer.h"
#include "sync/push_course.h"
#include "sync/push_steps.h"

namespace dtool::tree_sync {
namespace {

/// How soon a host that has to wait for others asks again.
constexpr std::chrono::milliseconds kAskAgain{20};

/// For a script that looks at files: a lock is waited for ten minutes, and a large tree may be on a
/// slow disk.
constexpr std::chrono::minutes kPatience{30};

class Push : public Pushing {
 public:
  Push(const std::vector<ssh::Host>& hosts, const Tree& tree,
       const std::vector<Destination>& destinations, ssh::Events& events,
       const ssh::TaskOptions& options, Relay relay, Foreign foreign);

  ssh::Task first_task(std::size_t host) const override { return task(*by_host_.at(host)); }
  std::vector<ssh::HostResult> finish(ssh::Remote& remote) override;
  const Listing* listing() const override { return &listing_; }
  Pushed pushed(std::size_t host) const override { return by_host_.at(host)->pushed; }
  std::vector<Missed> missed() const override { return course_.missed(); }

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  void on_progress(std::size_t host, const ssh::Transferred& input) override;
  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_silence(const std::vector<std::size_t>& waiting) override { events_.on_silence(waiting); }
  void on_interrupt(const std::vector<std::size_t>& running) override;

 private:
  ssh::Task task(const PushSlot& slot) const;
  ssh::Command command(const PushSlot& slot, const RemoteTree& tree) const;
  std::shared_ptr<const ssh::SharedBytes> names_for(const PushSlot& slot) const;

  const std::vector<ssh::Host>& hosts_;
  const Tree& tree_;
  const Listing listing_;
  PushCourse course_;
  const std::string name_ = ssh::random_hex(8);
  int round_ = 0;  ///< one more each time that hosts go on which had to wait
  const Foreign foreign_;
  /// The names of the tree's files, for who needs them.
  mutable std::map<Compression, std::shared_ptr<const ssh::SharedBytes>> names_;
  ssh::Events& events_;
  const ssh::TaskOptions options_;
  std::vector<PushSlot> slots_;
  std::map<std::size_t, PushSlot*> by_host_;
};

/// None if all destinations are the tree itself, and no run is made a copy of it: nothing is to be
/// sent, or proven later.
std::vector<std::string> contents_for(const std::vector<ssh::Host>& hosts, const Tree& tree,
                                      const std::vector<Destination>& destinations) {
  const auto is_the_tree = [&](const Destination& each) {
    return hosts.at(each.host).is_local && each.folder == tree.root.native() && !each.own;
  };
  if (std::ranges::all_of(destinations, is_the_tree)) return {};
  return read_contents(tree);
}

Push::Push(const std::vector<ssh::Host>& hosts, const Tree& tree,
           const std::vector<Destination>& destinations, ssh::Events& events,
           const ssh::TaskOptions& options, Relay relay, Foreign foreign)
    : hosts_(hosts),
      tree_(tree),
      listing_(list_tree(tree, contents_for(hosts, tree, destinations))),
      course_(hosts, tree, listing_, relay, destinations.size()),
      foreign_(foreign),
      events_(events),
      options_(options) {
  const auto is_remote = [&hosts](const Destination& each) {
    return !hosts.at(each.host).is_local;
  };
  const Package* guess = std::ranges::any_of(destinations, is_remote) ? course_.guess() : nullptr;
  for (const Destination& destination : destinations) {
    if (!ssh::is_anchored(destination.folder)) {
      throw std::invalid_argument(
          fmt::format("the folder '{}' on the hosts must start with / or ~/", destination.folder));
    }
    slots_.push_back({destination});
    if (is_remote(destination)) slots_.back().package = guess;
  }
  for (PushSlot& slot : slots_) {
    if (!by_host_.emplace(slot.destination.host, &slot).second) {
      throw std::invalid_argument(
          fmt::format("two destinations on {}", ssh::to_string(hosts.at(slot.destination.host))));
    }
  }
}

std::vector<ssh::HostResult> Push::finish(ssh::Remote& remote) {
  for (std::size_t waited = slots_.size();;) {
    ++round_;
    // In each round one host of those that share a folder does the work, unless their replies are
    // wrong.
    const auto waiting = static_cast<std::size_t>(std::ranges::count_if(slots_, &PushSlot::shares));
    const bool goes_on = waiting < std::exchange(waited, waiting);
    std::vector<ssh::Task> tasks;
    for (PushSlot& slot : slots_) {
      if (!slot.shares) continue;
      slot.shares = false;
      if (!goes_on) {
        slot.result.exit_code = 1;
        slot.result.error = "it says that another host has its folder in hand, and none has";
        events_.on_result(slot.destination.host, slot.result);
        continue;
      }
      slot.step = PushStep::ask;
      const auto holder = by_host_.find(static_cast<std::size_t>(slot.reply.holder.value_or(-1)));
      slot.follows = holder != by_host_.end() && holder->second->has_unpacked;
      tasks.push_back(task(slot));
    }
    if (tasks.empty()) break;
    course_.forget_packages();
    for (PushSlot& slot : slots_) slot.package = nullptr;
    ssh::RunOptions options;
    options.timeout = options_.timeout;
    options.follows = ssh::Follows::more;
    options.on_interrupt = ssh::OnInterrupt::leave;
    remote.run(std::move(tasks), *this, options);
  }
  std::vector<ssh::HostResult> results;
  for (PushSlot& slot : slots_) results.push_back(std::move(slot.result));
  return results;
}

std::shared_ptr<const ssh::SharedBytes> Push::names_for(const PushSlot& slot) const {
  const Compression compression = compression_for(slot);
  auto& names = names_[compression];
  if (names == nullptr) names = pack_names(tree_.files, compression);
  return names;
}

ssh::Command Push::command(const PushSlot& slot, const RemoteTree& tree) const {
  if (slot.step == PushStep::unpack) {
    const bool is_sealed = !slot.package->key.empty();
    return unpack_command(*slot.package, tree, is_sealed ? std::optional(slot.part) : std::nullopt);
  }
  if (slot.step == PushStep::prepare) {
    return prepare_command(names_for(slot), compression_for(slot), tree);
  }
  if (slot.step == PushStep::freeze)
    return freeze_command(names_for(slot), compression_for(slot), tree);
  if (slot.step == PushStep::refuse) return leave_command(tree);
  if (slot.step == PushStep::prune) return prune_command(tree);
  InPush push;
  const bool shares_nothing = slots_.size() == 1 || slot.follows;
  if (!shares_nothing) push = {fmt::format("{}.{}", name_, round_), slot.destination.host};
  return ask_command(slot.root.value_or(course_.unproven_root()), tree, push, slot.package);
}

ssh::Task Push::task(const PushSlot& slot) const {
  const std::size_t host = slot.destination.host;
  const std::string& folder = slot.destination.folder;
  const bool looks = foreign_ == Foreign::refuse && !slot.has_compared;
  RemoteTree tree{folder, listing_.fingerprint, listing_.digest};
  if (looks) tree.foreign = ForeignFiles::look;
  tree.own = slot.destination.own;
  if (slot.step != PushStep::send && slot.step != PushStep::compare) {
    ssh::TaskOptions options{options_.timeout};
    options.follows = ssh::Follows::more;
    // Unpacking continues as long as bytes arrive, and has its own limit.
    if (slot.step != PushStep::unpack && !options.timeout) options.timeout = kPatience;
    return {host, command(slot, tree), options};
  }
  const Link link = hosts_.at(host).is_local ? Link::local : Link::network;
  const ssh::TaskOptions not_kept{options_.timeout, ssh::KeepOutput::no};
  if (slot.step == PushStep::compare)
    return {host, compare_program(tree_, folder, link, slot.prepared.foreign), not_kept};
  const FolderLock lock{slot.prepared.lock, listing_.fingerprint};
  return {host, push_program(tree_, folder, link, lock, course_.same_for(slot)), not_kept};
}

void Push::on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) {
  PushSlot& slot = *by_host_.at(host);
  Relaying* relaying = slot.step == PushStep::unpack ? course_.relaying_of(slot) : nullptr;
  if (relaying != nullptr && stream == ssh::Stream::out) {
    if (const auto received = relaying->heard(host, bytes)) events_.on_progress(host, *received);
  }
  if (slot.step != PushStep::send && slot.step != PushStep::compare) return;
  if (stream == ssh::Stream::err) {
    slot.err += bytes;
    return;
  }
  if (slot.step == PushStep::compare) {
    slot.differences.add(bytes);
    return;
  }
  constexpr std::size_t kTail = 4096;  // rsync's figures at the end take 700 bytes
  slot.out_tail += bytes;
  if (slot.out_tail.size() > 2 * kTail) slot.out_tail.erase(0, slot.out_tail.size() - kTail);
  events_.on_progress(host, {slot.progress.add(bytes).sent.bytes});
}

void Push::on_progress(std::size_t host, const ssh::Transferred& input) {
  const PushSlot& slot = *by_host_.at(host);
  if (slot.step != PushStep::unpack && slot.step != PushStep::ask) return;
  events_.on_progress(host, input);
  if (Relaying* relaying = course_.relaying_of(slot)) relaying->sent(host, input.bytes);
}

std::optional<ssh::NextTask> Push::next_task(std::size_t host, const ssh::HostResult& result) {
  PushSlot& slot = *by_host_.at(host);
  slot.result = result;
  if (slot.step == PushStep::send || slot.step == PushStep::compare)
    slot.result.err = std::exchange(slot.err, {});
  slot.step = course_.next(slot);
  slot.result.out.clear();
  if (slot.step == PushStep::done) return std::nullopt;
  if (slot.step == PushStep::await || slot.step == PushStep::serve)
    return ssh::NextTask{std::nullopt, kAskAgain};
  return ssh::NextTask{task(slot)};
}

void Push::on_result(std::size_t host, const ssh::HostResult& result) {
  PushSlot& slot = *by_host_.at(host);
  if (slot.step != PushStep::done) slot.result = result;  // it came to no further step
  if (slot.shares) return;                                // finish() has it go on
  events_.on_result(host, slot.result);
}

void Push::on_interrupt(const std::vector<std::size_t>& running) {
  events_.on_interrupt(running);
}

}  // namespace

std::unique_ptr<Pushing> make_push(const std::vector<ssh::Host>& hosts, const Tree& tree,
                                   const std::vector<Destination>& destinations,
                                   ssh::Events& events, const ssh::TaskOptions& options,
                                   Relay relay, Foreign foreign) {
  return std::make_unique<Push>(hosts, tree, destinations, events, options, relay, foreign);
}

}  // namespace dtool::tree_sync

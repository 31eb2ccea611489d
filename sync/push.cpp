// SPDX-License-Identifier: MIT
#include "sync/push.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "ssh/machine/home_folder.h"
#include "ssh/machine/random_hex.h"
#include "ssh/quote.h"
#include "sync/contents.h"
#include "sync/listing.h"
#include "sync/package.h"
#include "sync/package_writer.h"
#include "sync/push_steps.h"

namespace dtool::tree_sync {
namespace {

/// `await`: until another host can pass the package on. `refuse`: takes the mark in the folder
/// away, then the host fails.
enum class Step { ask, await, unpack, prepare, compare, refuse, send, prune, freeze, done };

/// How soon a host that has to wait for others asks again.
constexpr std::chrono::milliseconds kAskAgain{20};

/// For a script that looks at files: a lock is waited for ten minutes, and a large tree may be on a
/// slow disk.
constexpr std::chrono::minutes kPatience{30};

/// One host on its way through the steps.
struct Slot {
  Destination destination;
  Step step = Step::ask;
  host::TreeReply reply = {};
  bool shares = false;  ///< its folder with a host that has it in hand: it waits for that one
  bool has_unpacked = false;
  bool follows = false;  ///< it shares the folder of a host that has unpacked: the tree is there,
                         ///< and any number of hosts may check it at once
  std::optional<host::TreeRoot> root = {};  ///< with the mark by which it proves that it sees it
  const Package* package = nullptr;         ///< that it is sent: with the question a guess
  host::RelayPart part = {};
  host::PrepareReply prepared = {};
  bool has_compared = false;  ///< with the files there that are not as dtool sent them
  Differences differences = {};
  ssh::HostResult result = {};
  Pushed pushed = {};
  ProgressReader progress = {};
  std::string out_tail = {};  ///< of rsync, whose progress on a large tree would fill the memory
  std::string err = {};
};

class Push : public Pushing {
 public:
  Push(const std::vector<ssh::Host>& hosts, const Tree& tree,
       const std::vector<Destination>& destinations, ssh::Events& events,
       const ssh::TaskOptions& options, Relay relay, Foreign foreign);

  ssh::Task first_task(std::size_t host) const override { return task(*by_host_.at(host)); }
  std::vector<ssh::HostResult> finish(ssh::Remote& remote) override;
  const Listing* listing() const override { return &listing_; }
  Pushed pushed(std::size_t host) const override { return by_host_.at(host)->pushed; }
  std::vector<Missed> missed() const override;

  void on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) override;
  void on_progress(std::size_t host, const ssh::Transferred& input) override;
  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_interrupt(const std::vector<std::size_t>& running) override;

 private:
  ssh::Task task(const Slot& slot) const;
  ssh::Command command(const Slot& slot, const RemoteTree& tree) const;
  std::shared_ptr<const ssh::SharedBytes> names_for(const Slot& slot) const;
  void forget_packages();
  Step next_step(Slot& slot);
  Step after_ask(Slot& slot);
  Step take_part(Slot& slot);
  Step after_unpack(Slot& slot);
  Step after_package(Slot& slot, const host::Unpacked& unpacked);
  Step after_compare(Slot& slot);
  Same same_for(const Slot& slot) const;
  const Package* package_for(const Slot& slot);
  Relaying* relaying_of(const Slot& slot);

  const std::vector<ssh::Host>& hosts_;
  const Tree& tree_;
  Root root_{tree_};
  const Listing listing_;
  const std::string name_ = ssh::random_hex(8);
  int round_ = 0;  ///< one more each time that hosts go on which had to wait
  bool is_kept_ = false;
  Packages packages_;
  const Relay relay_;
  const Foreign foreign_;
  std::map<const Package*, Relaying> relayings_;  ///< of sealed packages
  std::vector<Missed> missed_;                    ///< beside what relayings_ know
  /// The names of the tree's files, for who needs them.
  mutable std::map<Compression, std::shared_ptr<const ssh::SharedBytes>> names_;
  ssh::Events& events_;
  const ssh::TaskOptions options_;
  std::vector<Slot> slots_;
  std::map<std::size_t, Slot*> by_host_;
};

/// None if all destinations are the tree itself, and no run is made a copy of it: nothing is to be
/// sent, or proven later.
std::vector<std::string> contents_for(const std::vector<ssh::Host>& hosts, const Tree& tree,
                                      const std::vector<Destination>& destinations) {
  const auto is_the_tree = [&](const Destination& each) {
    return hosts.at(each.host).is_local && each.folder == tree.root.native() && !each.own;
  };
  if (std::ranges::all_of(destinations, is_the_tree)) return {};
  const std::filesystem::path home = ssh::home_folder();
  return read_contents(tree, home / ".dtool" / "contents", std::time(nullptr));
}

Push::Push(const std::vector<ssh::Host>& hosts, const Tree& tree,
           const std::vector<Destination>& destinations, ssh::Events& events,
           const ssh::TaskOptions& options, Relay relay, Foreign foreign)
    : hosts_(hosts),
      tree_(tree),
      listing_(list_tree(tree, contents_for(hosts, tree, destinations))),
      packages_(tree_, listing_),
      relay_(relay),
      foreign_(foreign),
      events_(events),
      options_(options) {
  const auto is_remote = [&hosts](const Destination& each) {
    return !hosts.at(each.host).is_local;
  };
  // Hosts that have it from hosts are sent nothing that may be in vain.
  const bool may_guess = relay == Relay::no && std::ranges::any_of(destinations, is_remote);
  const Package* guess = may_guess ? packages_.guess() : nullptr;
  for (const Destination& destination : destinations) {
    if (!ssh::is_anchored(destination.folder)) {
      throw std::invalid_argument(
          fmt::format("the folder '{}' on the hosts must start with / or ~/", destination.folder));
    }
    slots_.push_back({destination});
    if (is_remote(destination)) slots_.back().package = guess;
  }
  for (Slot& slot : slots_) {
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
    const auto waiting = static_cast<std::size_t>(std::ranges::count_if(slots_, &Slot::shares));
    const bool goes_on = waiting < std::exchange(waited, waiting);
    std::vector<ssh::Task> tasks;
    for (Slot& slot : slots_) {
      if (!slot.shares) continue;
      slot.shares = false;
      if (!goes_on) {
        slot.result.exit_code = 1;
        slot.result.error = "it says that another host has its folder in hand, and none has";
        events_.on_result(slot.destination.host, slot.result);
        continue;
      }
      slot.step = Step::ask;
      const auto holder = by_host_.find(static_cast<std::size_t>(slot.reply.holder.value_or(-1)));
      slot.follows = holder != by_host_.end() && holder->second->has_unpacked;
      tasks.push_back(task(slot));
    }
    if (tasks.empty()) break;
    forget_packages();
    ssh::RunOptions options;
    options.timeout = options_.timeout;
    options.on_interrupt = ssh::OnInterrupt::leave;
    remote.run(std::move(tasks), *this, options);
  }
  std::vector<ssh::HostResult> results;
  for (Slot& slot : slots_) results.push_back(std::move(slot.result));
  return results;
}

/// Another run of the tasks packs anew, and no key is used for two packages.
void Push::forget_packages() {
  missed_ = missed();
  relayings_.clear();
  packages_.clear();
  for (Slot& slot : slots_) slot.package = nullptr;
}

std::vector<Missed> Push::missed() const {
  std::vector<Missed> all = missed_;
  for (const auto& [package, relaying] : relayings_)
    all.insert(all.end(), relaying.missed().begin(), relaying.missed().end());
  return all;
}

Compression compression_for(const Slot& slot) {
  return slot.reply.reads_zstd ? Compression::zstd : Compression::none;
}

std::shared_ptr<const ssh::SharedBytes> Push::names_for(const Slot& slot) const {
  const Compression compression = compression_for(slot);
  auto& names = names_[compression];
  if (names == nullptr) names = pack_names(tree_.files, compression);
  return names;
}

ssh::Command Push::command(const Slot& slot, const RemoteTree& tree) const {
  if (slot.step == Step::unpack) {
    const bool is_sealed = !slot.package->key.empty();
    return unpack_command(*slot.package, tree, is_sealed ? std::optional(slot.part) : std::nullopt);
  }
  if (slot.step == Step::prepare) {
    return prepare_command(names_for(slot), compression_for(slot), tree);
  }
  if (slot.step == Step::freeze)
    return freeze_command(names_for(slot), compression_for(slot), tree);
  if (slot.step == Step::refuse) return leave_command(tree);
  if (slot.step == Step::prune) return prune_command(tree);
  InPush push;
  const bool shares_nothing = slots_.size() == 1 || slot.follows;
  if (!shares_nothing) push = {fmt::format("{}.{}", name_, round_), slot.destination.host};
  return ask_command(slot.root.value_or(root_.unproven()), tree, push, slot.package);
}

ssh::Task Push::task(const Slot& slot) const {
  const std::size_t host = slot.destination.host;
  const std::string& folder = slot.destination.folder;
  const bool looks = foreign_ == Foreign::refuse && !slot.has_compared;
  RemoteTree tree{folder, listing_.fingerprint, listing_.digest};
  if (looks) tree.foreign = ForeignFiles::look;
  tree.own = slot.destination.own;
  if (slot.step != Step::send && slot.step != Step::compare) {
    ssh::TaskOptions options{options_.timeout};
    // Unpacking continues as long as bytes arrive, and has its own limit.
    if (slot.step != Step::unpack && !options.timeout) options.timeout = kPatience;
    return {host, command(slot, tree), options};
  }
  const Link link = hosts_.at(host).is_local ? Link::local : Link::network;
  const ssh::TaskOptions not_kept{options_.timeout, ssh::KeepOutput::no};
  if (slot.step == Step::compare)
    return {host, compare_program(tree_, folder, link, slot.prepared.foreign), not_kept};
  const FolderLock lock{slot.prepared.lock, listing_.fingerprint};
  return {host, push_program(tree_, folder, link, lock, same_for(slot)), not_kept};
}

/// If files were touched there, or their origin is unknown, size and time prove nothing.
Same Push::same_for(const Slot& slot) const {
  const host::TreeReply& there = slot.reply;
  const bool is_proven =
      there.is_empty || (!there.basis.empty() && !packages_.hides_edits(there.basis));
  return is_proven ? Same::size_and_time : Same::content;
}

void Push::on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) {
  Slot& slot = *by_host_.at(host);
  Relaying* relaying = slot.step == Step::unpack ? relaying_of(slot) : nullptr;
  if (relaying != nullptr && stream == ssh::Stream::out) {
    if (const auto received = relaying->heard(host, bytes)) events_.on_progress(host, *received);
  }
  if (slot.step != Step::send && slot.step != Step::compare) return;
  if (stream == ssh::Stream::err) {
    slot.err += bytes;
    return;
  }
  if (slot.step == Step::compare) {
    slot.differences.add(bytes);
    return;
  }
  constexpr std::size_t kTail = 4096;  // rsync's figures at the end take 700 bytes
  slot.out_tail += bytes;
  if (slot.out_tail.size() > 2 * kTail) slot.out_tail.erase(0, slot.out_tail.size() - kTail);
  events_.on_progress(host, {slot.progress.add(bytes).sent.bytes});
}

void Push::on_progress(std::size_t host, const ssh::Transferred& input) {
  const Slot& slot = *by_host_.at(host);
  if (slot.step != Step::unpack && slot.step != Step::ask) return;
  events_.on_progress(host, input);
  if (Relaying* relaying = relaying_of(slot)) relaying->sent(host, input.bytes);
}

std::optional<ssh::NextTask> Push::next_task(std::size_t host, const ssh::HostResult& result) {
  Slot& slot = *by_host_.at(host);
  slot.result = result;
  if (slot.step == Step::send || slot.step == Step::compare)
    slot.result.err = std::exchange(slot.err, {});
  slot.step = next_step(slot);
  slot.result.out.clear();
  if (slot.step == Step::done) return std::nullopt;
  if (slot.step == Step::await) return ssh::NextTask{std::nullopt, kAskAgain};
  return ssh::NextTask{task(slot)};
}

void Push::on_result(std::size_t host, const ssh::HostResult& result) {
  Slot& slot = *by_host_.at(host);
  if (slot.step != Step::done) slot.result = result;  // it came to no further step
  if (slot.shares) return;                            // finish() has it go on
  events_.on_result(host, slot.result);
}

void Push::on_interrupt(const std::vector<std::size_t>& running) {
  events_.on_interrupt(running);
}

/// The package that the host lacks, shared with all hosts that lack the same.
const Package* Push::package_for(const Slot& slot) {
  const host::TreeReply& there = slot.reply;
  const bool fits = !there.basis.empty() || there.is_empty;
  // For folders on this machine rsync copies as fast, and no other host shares the package.
  if (!fits || hosts_.at(slot.destination.host).is_local) return nullptr;
  const bool is_sealed = relay_ == Relay::yes && slots_.size() > 1;
  return packages_.get(there.basis, compression_for(slot), is_sealed ? Seal::yes : Seal::no);
}

Relaying* Push::relaying_of(const Slot& slot) {
  const auto found = relayings_.find(slot.package);
  return found == relayings_.end() ? nullptr : &found->second;
}

/// Unpacking, or waiting until it is clear from where the package comes.
Step Push::take_part(Slot& slot) {
  if (slot.package->key.empty()) return Step::unpack;
  Relaying& relaying =
      relayings_.try_emplace(slot.package, *slot.package, slots_.size()).first->second;
  const auto part = relaying.part_for(slot.destination.host);
  if (!part) return Step::await;
  slot.part = *part;
  return Step::unpack;
}

Step Push::after_ask(Slot& slot) {
  const bool has_guess = slot.package != nullptr;
  if (has_guess && slot.result.failure == ssh::Failure::local_program) {  // it could not be made
    slot.package = nullptr;
    return Step::ask;
  }
  const auto reply = read_tree_reply(slot.result);
  if (!reply) return Step::done;
  slot.reply = *reply;
  if (reply->is_same_folder && !slot.root && !hosts_.at(slot.destination.host).is_local) {
    if ((slot.root = root_.marked())) return Step::ask;
    set_unproven(slot.result, slot.destination.folder);
    return Step::done;
  }
  slot.pushed.is_the_tree = reply->is_same_folder;
  slot.shares = reply->holder.has_value();
  if (slot.pushed.is_the_tree) return slot.destination.own ? Step::freeze : Step::done;
  if (slot.shares || reply->is_whole) return Step::done;
  if (!std::exchange(is_kept_, true)) packages_.keep_basis();
  // A host may say so, too, that was sent none.
  if (reply->unpacked && has_guess) return after_package(slot, *reply->unpacked);
  slot.package = package_for(slot);
  return slot.package == nullptr ? Step::prepare : take_part(slot);
}

Step Push::after_unpack(Slot& slot) {
  // The package could not be made here; whether rsync can read the tree it tells itself.
  const bool is_made = slot.result.failure != ssh::Failure::local_program;
  const auto reply = is_made ? read_tree_reply(slot.result) : host::TreeReply{};
  const host::Unpacked unpacked = reply && reply->unpacked ? *reply->unpacked : host::Unpacked{};
  if (Relaying* relaying = relaying_of(slot)) {
    const auto next = relaying->ended(slot.destination.host, unpacked);
    if (next == Relaying::Next::asks_again) return take_part(slot);
  }
  // Another launcher may have sent the same meanwhile.
  return !reply || reply->is_whole ? Step::done : after_package(slot, unpacked);
}

Step Push::after_package(Slot& slot, const host::Unpacked& unpacked) {
  if (unpacked.foreign > 0) {
    set_foreign(slot.result, unpacked.folder, static_cast<std::size_t>(unpacked.foreign),
                unpacked.first);
    return Step::done;
  }
  if (!unpacked.is_whole) {
    if (!slot.package->key.empty()) missed_.push_back({slot.destination.host, unpacked.broken});
    return Step::prepare;
  }
  slot.has_unpacked = true;
  slot.pushed = {{slot.package->files, slot.package->bytes},
                 static_cast<std::size_t>(unpacked.removed),
                 false};
  return Step::done;
}

/// Where all files that are not as dtool sent them are as the tree's, they may become dtool's.
Step Push::after_compare(Slot& slot) {
  explain(slot.result);
  if (!slot.result.ok()) return Step::done;
  slot.has_compared = true;
  return slot.differences.count() == 0 ? Step::prepare : Step::refuse;
}

Step Push::next_step(Slot& slot) {
  switch (slot.step) {
    case Step::ask:
      return after_ask(slot);
    case Step::await:
      return slot.result.failure == ssh::Failure::none ? take_part(slot) : Step::done;
    case Step::unpack:
      return after_unpack(slot);
    case Step::prepare:
      slot.prepared = reply_in<host::PrepareReply>(slot.result).value_or(host::PrepareReply{});
      if (slot.has_compared) return slot.prepared.lock.empty() ? Step::done : Step::send;
      slot.differences.add(slot.prepared.first_lost, slot.prepared.lost);
      if (!slot.prepared.foreign.empty()) return Step::compare;
      if (slot.differences.count() > 0) return Step::refuse;
      return slot.prepared.lock.empty() ? Step::done : Step::send;
    case Step::compare:
      return after_compare(slot);
    case Step::refuse:
      if (slot.result.failure == ssh::Failure::none)
        set_foreign(slot.result, slot.destination.folder, slot.differences.count(),
                    slot.differences.first());
      return Step::done;
    case Step::send:
      explain(slot.result);
      slot.pushed.sent = read_sent(slot.out_tail);
      return slot.result.ok() ? Step::prune : Step::done;
    case Step::freeze:
      reply_in<host::FreezeReply>(slot.result);
      return Step::done;
    case Step::prune:
    case Step::done:
      break;
  }
  if (const auto pruned = reply_in<host::PruneReply>(slot.result)) {
    slot.pushed.removed = static_cast<std::size_t>(pruned->removed);
    refuse_changed(slot.result, tree_);
  }
  return Step::done;
}

}  // namespace

std::unique_ptr<Pushing> make_push(const std::vector<ssh::Host>& hosts, const Tree& tree,
                                   const std::vector<Destination>& destinations,
                                   ssh::Events& events, const ssh::TaskOptions& options,
                                   Relay relay, Foreign foreign) {
  return std::make_unique<Push>(hosts, tree, destinations, events, options, relay, foreign);
}

}  // namespace dtool::tree_sync

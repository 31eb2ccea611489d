// SPDX-License-Identifier: MIT
#include "sync/push/push.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "ssh/host/tree/tree_folder.h"
#include "ssh/machine/encodings.h"
#include "ssh/quote.h"
#include "sync/contents.h"
#include "sync/copy/parcel_run.h"
#include "sync/copy/parcels.h"
#include "sync/listing.h"
#include "sync/package_writer.h"
#include "sync/push/push_steps.h"

namespace dtool::tree_sync {
namespace {

/// For a script that looks at files: a lock is waited for ten minutes, and a large tree may be on a
/// slow disk.
constexpr std::chrono::minutes kPatience{30};

/// The first time a host may be sent the listing alone, then what it lacks, and once more what
/// arrived spoilt.
constexpr int kRounds = 4;

/// A guess for this many bytes for all hosts together goes by parcels, which hosts pass on.
constexpr std::uint64_t kMostGuessed = 16'000'000;

/// `send`: lacks something, which finish() sends to all such hosts together.
enum class Step { ask, send, place, freeze, done };

/// One host on its way through the steps.
struct Slot {
  Destination destination;
  Step step = Step::ask;
  bool is_guessed = false;  ///< a package goes along with the question
  bool shares = false;      ///< its folder with a host that has it in hand: it waits for that one
  std::optional<std::size_t> holder = {};  ///< the host that has the folder in hand
  bool follows = false;                    ///< it shares the folder of a host that has been sent
                                           ///< the tree: any number may check it at once
  /// The root with the mark by which the host proves that it sees it.
  std::optional<host::TreeRoot> root = {};
  bool reads_zstd = false;  ///< the content that is sent to it may be compressed
  std::string basis = {};   ///< the tree there from which it is known what it lacks
  Lacking lacking = {};     ///< the part of TreeList's files that it lacks
  int rounds = 0;           ///< the number of rounds in which it was sent something
  std::optional<ssh::HostResult> lost = {};  ///< why a parcel was not taken; the tree may be there
  ssh::HostResult result = {};
  Pushed pushed = {};
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
  std::vector<Missed> missed() const override { return missed_; }

  void on_progress(std::size_t host, const ssh::Transferred& input) override;
  std::optional<ssh::NextTask> next_task(std::size_t host, const ssh::HostResult& result) override;
  void on_result(std::size_t host, const ssh::HostResult& result) override;
  void on_silence(const std::vector<std::size_t>& waiting) override { events_.on_silence(waiting); }
  void on_interrupt(const std::vector<std::size_t>& running) override {
    events_.on_interrupt(running);
  }

 private:
  ssh::Task task(const Slot& slot) const;
  ssh::Command command(const Slot& slot) const;
  host::CopyPlace parcels_of(const Slot& slot) const;

  Step next(Slot& slot);
  Step after_ask(Slot& slot);
  Step after_place(Slot& slot);
  static bool is_over(Slot& slot, const host::PlaceReply& reply);

  const TreeList& list();
  bool send_round(ssh::Remote& remote);
  std::optional<ssh::Task> after_parcels(ParcelHost& taker);
  std::vector<ssh::Task> tasks_of_sharing();
  void run(ssh::Remote& remote, std::vector<ssh::Task> tasks);

  const std::vector<ssh::Host>& hosts_;
  const Tree& tree_;
  const Listing listing_;
  std::unique_ptr<Guess> guess_;
  std::optional<TreeList> list_;
  RunningSums sums_;
  Root root_{tree_};
  const std::string name_ = ssh::random_hex(8);
  int round_ = 0;  ///< one more each time that hosts go on which had to wait, or are sent something
  const Relay relay_;
  const Foreign foreign_;
  ssh::Events& events_;
  const ssh::TaskOptions options_;
  std::vector<Slot> slots_;
  std::map<std::size_t, Slot*> by_host_;
  std::vector<Missed> missed_;
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
      relay_(relay),
      foreign_(foreign),
      events_(events),
      options_(options) {
  const auto is_remote = [&hosts](const auto& each) { return !hosts.at(each.host).is_local; };
  if (std::ranges::any_of(destinations, is_remote)) guess_ = make_guess(tree, listing_);
  const std::uint64_t all = guess_ ? guess_->package.expected * destinations.size() : 0;
  const bool is_passed_on =
      relay == Relay::yes
          ? destinations.size() > 1
          : relay == Relay::where_it_pays && destinations.size() >= kRelay && all >= kMostGuessed;
  if (is_passed_on) guess_.reset();
  for (const Destination& destination : destinations) {
    if (!ssh::is_anchored(destination.folder))
      throw std::invalid_argument(
          fmt::format("the folder '{}' on the hosts must start with / or ~/", destination.folder));
    slots_.push_back({destination});
    slots_.back().is_guessed = guess_ && is_remote(destination);
  }
  for (Slot& slot : slots_) {
    if (!by_host_.emplace(slot.destination.host, &slot).second)
      throw std::invalid_argument(
          fmt::format("two destinations on {}", ssh::to_string(hosts.at(slot.destination.host))));
  }
}

/// Hosts that check one folder at once do not delete each other's listing.
std::string aside_of(const Slot& slot) {
  return slot.follows ? fmt::format("{}-{}", host::kComing, slot.destination.host) : host::kComing;
}

ssh::Command Push::command(const Slot& slot) const {
  const std::string& folder = slot.destination.folder;
  const auto& own = slot.destination.own;
  const bool refuses_foreign = foreign_ == Foreign::refuse;
  if (slot.step == Step::place)
    return ssh::ask_host(host::PlaceRequest{folder, listing_.fingerprint, slot.basis,
                                            refuses_foreign, own, parcels_of(slot)});
  if (slot.step == Step::freeze) {
    const auto compression = slot.reads_zstd ? Compression::zstd : Compression::none;
    ssh::Command command = ssh::ask_host(host::FreezeRequest{
        folder, listing_.digest, own.value_or(host::OwnTree()), slot.reads_zstd});
    command.input_from = pack_names(tree_.files, compression);
    return command;
  }
  host::TreeRequest request;
  request.folder = folder;
  request.tree = listing_.fingerprint;
  request.root = slot.root.value_or(root_.unproven());
  request.own = own;
  request.refuses_foreign = refuses_foreign;
  const bool shares_nothing = slots_.size() == 1 || slot.follows;
  if (!shares_nothing) {
    request.push = fmt::format("{}.{}", name_, round_);
    request.host = static_cast<std::int64_t>(slot.destination.host);
  }
  request.aside = aside_of(slot);
  return ask_command(std::move(request), slot.is_guessed ? guess_.get() : nullptr);
}

/// As parcels name this push.
host::CopyPlace Push::parcels_of(const Slot& slot) const {
  host::CopyPlace place;
  place.folder = slot.destination.folder + "/" + aside_of(slot);
  place.copy = listing_.fingerprint + "." + name_;
  place.round = round_;
  place.host = static_cast<std::int64_t>(slot.destination.host);
  return place;
}

ssh::Task Push::task(const Slot& slot) const {
  ssh::TaskOptions options{options_.timeout};
  options.follows = ssh::Follows::more;
  if (!options.timeout) options.timeout = kPatience;
  return {slot.destination.host, command(slot), options};
}

Step Push::after_ask(Slot& slot) {
  if (slot.is_guessed && slot.result.failure == ssh::Failure::local_program) {
    slot.is_guessed = false;  // it could not be made
    return Step::ask;
  }
  const auto reply = ssh::reply_in<host::TreeReply>(slot.result);
  if (!reply) return Step::done;
  if (reply->is_same_folder && !slot.root && !hosts_.at(slot.destination.host).is_local) {
    if ((slot.root = root_.marked())) return Step::ask;
    set_unproven(slot.result, slot.destination.folder);
    return Step::done;
  }
  slot.reads_zstd = reply->reads_zstd;
  slot.pushed.is_the_tree = reply->is_same_folder;
  slot.shares = reply->holder.has_value();
  if (slot.shares) slot.holder = static_cast<std::size_t>(*reply->holder);
  if (slot.pushed.is_the_tree) return slot.destination.own ? Step::freeze : Step::done;
  if (slot.shares || reply->is_whole) return Step::done;
  // A host may say so, too, that was sent none.
  if (reply->placed && slot.is_guessed && is_over(slot, *reply->placed)) {
    if (!slot.result.ok()) return Step::done;
    keep_listing(listing_, tree_.root);
    slot.pushed.sent = {guess_->package.files, guess_->package.bytes};
    return Step::done;
  }
  try {
    const TreeList::Known known = list().known(*reply);
    slot.lacking = {slot.destination.host, known.lacking};
    slot.basis = known.basis;
  } catch (const std::runtime_error& error) {
    slot.result.fail(error.what(), "is the disk with /tmp full on this machine?");
    return Step::done;
  }
  return Step::send;
}

/// Whether the tree is in its place, or may not be.
bool Push::is_over(Slot& slot, const host::PlaceReply& reply) {
  slot.pushed.removed = static_cast<std::size_t>(reply.removed);
  if (reply.foreign > 0)
    set_foreign(slot.result, reply.path, static_cast<std::size_t>(reply.foreign), reply.first);
  return reply.foreign > 0 || reply.is_whole;
}

Step Push::after_place(Slot& slot) {
  const auto reply = ssh::reply_in<host::PlaceReply>(slot.result);
  const auto lost = std::exchange(slot.lost, {});
  const bool is_told = slot.result.failure == ssh::Failure::none;
  if (lost && is_told && (!reply || !reply->is_whole)) slot.result = *lost;
  if (!slot.result.ok()) return Step::done;
  if (is_over(slot, *reply)) return Step::done;
  slot.basis.clear();
  try {
    slot.lacking.entries = list().lacking(*reply);
  } catch (const host::BadMessage& error) {
    slot.result.fail(error.what(), error.hint());
    return Step::done;
  }
  if (slot.rounds < kRounds) return Step::send;
  slot.result.fail(fmt::format("{} of {} files in {} are not as they were sent",
                               slot.lacking.entries.size(), tree_.files.size(), reply->path),
                   "does something else write there? the same command sends what is lacking");
  return Step::done;
}

/// What comes after a step, whose result is in `slot.result`; this gets its error and hint.
Step Push::next(Slot& slot) {
  if (slot.step == Step::ask) return after_ask(slot);
  if (slot.step == Step::place) return after_place(slot);
  if (slot.step == Step::freeze) ssh::reply_in<host::FreezeReply>(slot.result);
  return Step::done;
}

/// Made when the first host lacks something.
const TreeList& Push::list() {
  if (!list_) {
    keep_listing(listing_, tree_.root);
    list_.emplace(tree_, listing_);
  }
  return *list_;
}

/// What comes next on a host that has its parcels, or has failed.
std::optional<ssh::Task> Push::after_parcels(ParcelHost& taker) {
  Slot& slot = *by_host_.at(taker.host);
  slot.result = std::move(taker.result);
  slot.step = Step::done;
  slot.shares = taker.holder.has_value();
  if (slot.shares) {
    slot.holder = taker.holder;
    return std::nullopt;
  }
  for (const auto& [entry, there] : slot.lacking.entries) {
    if (entry == 0) continue;
    ++slot.pushed.sent.files;
    slot.pushed.sent.bytes += list().files().entries[entry].size - there;
  }
  if (!taker.spoilt.empty() || !slot.result.ok()) slot.basis.clear();
  if (slot.result.failure == ssh::Failure::local_program && slot.result.hint.empty())
    slot.result.hint =
        "the same command sends the files as they are now; a file that is written all the time is "
        "left out by --exclude";
  if (slot.result.failure == ssh::Failure::connection_lost && slot.result.hint.empty())
    slot.result.hint = "what has come stays; the same command goes on from there";
  if (slot.result.failure != ssh::Failure::none) return std::nullopt;
  // Another launcher that sends the same may have taken its turn.
  if (!slot.result.ok()) slot.lost = slot.result;
  slot.step = Step::place;
  return task(slot);
}

/// Sends all hosts together what they lack, and each of them then puts the tree in its place.
/// Returns whether any host lacked something.
bool Push::send_round(ssh::Remote& remote) {
  std::vector<Lacking> lacking;
  std::vector<ParcelHost> takers;
  Compression compression = Compression::zstd;
  std::uint64_t most = 0;
  ++round_;
  for (Slot& slot : slots_) {
    if (slot.step != Step::send) continue;
    ParcelHost taker;
    taker.host = slot.destination.host;
    taker.place = parcels_of(slot);
    takers.push_back(std::move(taker));
    lacking.push_back(slot.lacking);
    if (!slot.reads_zstd) compression = Compression::none;
    std::uint64_t bytes = 0;
    for (const auto& [entry, there] : slot.lacking.entries)
      bytes += list().files().entries[entry].size - there;
    most = std::max(most, bytes);
    ++slot.rounds;
  }
  if (takers.empty()) return false;
  const auto parcels = cut_parcels(list().files(), lacking, parcel_sizes(takers.size(), most));
  std::set<std::size_t> ended;
  const auto first = [&](ParcelHost& taker) {
    ended.insert(taker.host);
    return after_parcels(taker);
  };
  ParcelRun parcel_run(list().files(), parcels, sums_, takers, compression, events_, relay_);
  parcel_run.set_next(first, *this);
  parcel_run.run(remote);
  const auto missed = parcel_run.missed();
  missed_.insert(missed_.end(), missed.begin(), missed.end());
  for (ParcelHost& taker : takers) {
    if (ended.contains(taker.host)) continue;  // else it came to no task, as when interrupted
    Slot& slot = *by_host_.at(taker.host);
    slot.result = std::move(taker.result);
    slot.step = Step::done;
    events_.on_result(taker.host, slot.result);
  }
  return true;
}

void Push::run(ssh::Remote& remote, std::vector<ssh::Task> tasks) {
  ssh::RunOptions options;
  options.timeout = options_.timeout;
  options.follows = ssh::Follows::more;
  options.on_interrupt = ssh::OnInterrupt::leave;
  remote.run(std::move(tasks), *this, options);
}

/// The questions of those that had to wait.
std::vector<ssh::Task> Push::tasks_of_sharing() {
  std::vector<ssh::Task> tasks;
  for (Slot& slot : slots_) {
    if (!std::exchange(slot.shares, false)) continue;
    slot.step = Step::ask;
    slot.is_guessed = false;
    slot.rounds = 0;
    const auto holder = by_host_.find(slot.holder.value_or(slots_.size()));
    slot.follows = holder != by_host_.end() && holder->second->pushed.sent.files > 0;
    tasks.push_back(task(slot));
  }
  return tasks;
}

std::vector<ssh::HostResult> Push::finish(ssh::Remote& remote) {
  for (std::size_t waited = slots_.size();;) {
    while (send_round(remote)) {
    }
    // In each round one host of those that share a folder does the work, unless their replies are
    // wrong.
    const auto waiting = static_cast<std::size_t>(std::ranges::count_if(slots_, &Slot::shares));
    if (waiting == 0) break;
    if (waiting >= std::exchange(waited, waiting)) {
      for (Slot& slot : slots_) {
        if (!std::exchange(slot.shares, false)) continue;
        slot.result.fail("it says that another host has its folder in hand, and none has");
        events_.on_result(slot.destination.host, slot.result);
      }
      break;
    }
    ++round_;
    run(remote, tasks_of_sharing());
  }
  std::vector<ssh::HostResult> results;
  for (Slot& slot : slots_) results.push_back(std::move(slot.result));
  return results;
}

void Push::on_progress(std::size_t host, const ssh::Transferred& input) {
  if (by_host_.at(host)->step == Step::ask) events_.on_progress(host, input);
}

std::optional<ssh::NextTask> Push::next_task(std::size_t host, const ssh::HostResult& result) {
  Slot& slot = *by_host_.at(host);
  slot.result = result;
  slot.step = next(slot);
  slot.result.out.clear();
  if (slot.step == Step::done || slot.step == Step::send) return std::nullopt;
  return ssh::NextTask{task(slot)};
}

void Push::on_result(std::size_t host, const ssh::HostResult& result) {
  Slot& slot = *by_host_.at(host);
  if (slot.step == Step::send || slot.shares) return;  // finish() has it go on
  if (slot.step != Step::done) slot.result = result;   // it came to no further step
  events_.on_result(host, slot.result);
}

}  // namespace

std::unique_ptr<Pushing> make_push(const std::vector<ssh::Host>& hosts, const Tree& tree,
                                   const std::vector<Destination>& destinations,
                                   ssh::Events& events, const ssh::TaskOptions& options,
                                   Relay relay, Foreign foreign) {
  return std::make_unique<Push>(hosts, tree, destinations, events, options, relay, foreign);
}

}  // namespace dtool::tree_sync

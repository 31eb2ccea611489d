// SPDX-License-Identifier: MIT
#include "sync/look.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ssh/machine/encodings.h"
#include "ssh/wire/tree.h"

namespace dtool::tree_sync {
namespace {

/// Questions whose hosts might share the source: the numbers of its folder are equal, as they are
/// on machines of one image, too.
using Groups = std::map<std::pair<std::uint64_t, std::string>, std::vector<std::size_t>>;

class Looking {
 public:
  Looking(ssh::Remote& remote, const std::vector<SourceQuestion>& looks,
          std::chrono::milliseconds timeout)
      : remote_(remote), looks_(looks), looked_(looks.size()) {
    options_.timeout = timeout;
  }

  std::vector<SourceAnswer> look(ssh::Events& events) {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < looks_.size(); ++i) all.push_back(i);
    Groups groups;
    const auto replies = ask(all, {}, events);
    for (std::size_t i = 0; i < looks_.size(); ++i) {
      if (!replies[i]) continue;
      looked_[i].host = replies[i]->host;
      groups[{replies[i]->inode, looks_[i].source.file}].push_back(i);
    }
    prove(groups);
    return std::move(looked_);
  }

 private:
  /// The first answers become those of look(); of later ones only the reply counts.
  std::vector<std::optional<host::LookReply>> ask(const std::vector<std::size_t>& places,
                                                  const host::LookRequest& with,
                                                  ssh::Events& events) {
    std::vector<ssh::Task> tasks;
    for (const std::size_t place : places) {
      host::LookRequest request = with;
      request.folder = looks_[place].source.folder;
      request.file = looks_[place].source.file;
      if (with.mark.empty()) request.run_id = looks_[place].run_id;
      request.host = static_cast<std::int64_t>(place);
      tasks.push_back({looks_[place].host, ssh::ask_host(request)});
    }
    auto results = remote_.run(std::move(tasks), events, options_);
    std::vector<std::optional<host::LookReply>> replies;
    for (std::size_t i = 0; i < places.size(); ++i) {
      replies.push_back(ssh::reply_in<host::LookReply>(results[i]));
      results[i].out.clear();
      if (with.mark.empty()) looked_[places[i]].result = std::move(results[i]);
    }
    return replies;
  }

  void prove(const Groups& groups) {
    std::vector<std::size_t> asked;
    for (const auto& [numbers, places] : groups)
      if (places.size() > 1) asked.insert(asked.end(), places.begin(), places.end());
    if (asked.empty() || remote_.interrupted()) return;
    host::LookRequest request;
    request.mark = ssh::random_hex(8);
    ssh::Events nobody;
    const auto replies = ask(asked, request, nobody);
    // The key is the place of the mark's maker.
    std::map<std::size_t, std::vector<std::size_t>> finders;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (!replies[i]) continue;
      const auto maker = static_cast<std::size_t>(
          replies[i]->holder.value_or(static_cast<std::int64_t>(asked[i])));
      finders[maker].push_back(asked[i]);
    }
    std::vector<std::size_t> makers;
    for (const auto& [maker, places] : finders) {
      if (std::ranges::count(places, maker) == 0) continue;  // a host claims what no other did
      const std::size_t first = *std::ranges::min_element(places);
      for (const std::size_t place : places)
        if (place != first) looked_[place].same_as = first;
      makers.push_back(maker);
    }
    request.lets_go = true;
    ask(makers, request, nobody);
  }

  ssh::Remote& remote_;
  const std::vector<SourceQuestion>& looks_;
  std::vector<SourceAnswer> looked_;
  ssh::RunOptions options_;
};

}  // namespace

std::vector<SourceAnswer> look_at_sources(ssh::Remote& remote,
                                          const std::vector<SourceQuestion>& looks,
                                          ssh::Events& events, std::chrono::milliseconds timeout) {
  return Looking(remote, looks, timeout).look(events);
}

}  // namespace dtool::tree_sync

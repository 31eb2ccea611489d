// SPDX-License-Identifier: MIT
// The keys in the store: `world_size` and `taken/<rank>` detect contradictions, `member/<rank>`
// signs a rank in, `everyone` says that all have signed in or that the run is called off, `failure`
// says why.
#include "trainer/ranks/rendezvous.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "trainer/launch/greeting.h"
#include "trainer/launch/network.h"
#include "trainer/ranks/run_store.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

/// torchrun may have its own store listening already: TORCHELASTIC_USE_AGENT_STORE, see
/// torch/distributed/rendezvous.py.
bool launcher_listens() {
  return process_environment("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
}

/// LibTorch 2.x has a second kind of store's server and asks for it by default, but Debian builds
/// without libuv, which it needs. A template, so that 1.13's compiler passes over it.
template <class StoreOptions>
void ask_for_plain_server(StoreOptions& options) {
  if constexpr (requires { options.useLibUV; }) options.useLibUV = false;
}

/// The launcher's store, which anybody can reach. If this run has a token, a name is used that
/// others cannot guess.
c10::intrusive_ptr<c10d::Store> join_launchers_store(const Endpoint& listener,
                                                     std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = listener.port;
  options.isServer = false;
  options.waitWorkers = false;
  options.timeout = timeout;
  ask_for_plain_server(options);
  // torchrun starts the same processes again after a failure, in the same store.
  const auto attempt = process_environment("TORCHELASTIC_RESTART_COUNT").value_or("0");
  const RunToken& token = own_run_token();
  const auto prefix = token.is_given() ? token.prove({"launcher's store", attempt}) : attempt;
  return c10::make_intrusive<c10d::PrefixStore>(
      "dtool/" + prefix, c10::make_intrusive<c10d::TCPStore>(listener.host, options));
}

c10::intrusive_ptr<c10d::Store> open_store(const Endpoint& listener,
                                           std::shared_ptr<StoreServer> server,
                                           std::chrono::milliseconds timeout) {
  if (launcher_listens()) return join_launchers_store(listener, timeout);
  return c10::make_intrusive<RunStore>(listener, timeout, std::move(server));
}

std::vector<std::uint8_t> bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string member_key(int rank) {
  return fmt::format("member/{}", rank);
}

Member this_member(const Place& place) {
  return {place.rank, place.machine, host_name(), local_address_towards(place.listener.host)};
}

std::string write_member(const Member& member) {
  return fmt::format("{} {} {}", member.machine, member.address, member.host);
}

Member read_member(int rank, const std::string& text) {
  Member member;
  member.rank = rank;
  std::istringstream(text) >> member.machine >> member.address >> member.host;
  return member;
}

/// The store ends with rank 0.
void let_others_read() {
  std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// Ends the rendezvous for everybody.
void call_off(c10d::Store& store, const std::string& reason) {
  put(store, "failure", reason);
  put(store, "everyone", "no");
  let_others_read();
}

/// Machines that were given other numbers of workers count other ranks, and some rank comes twice.
void check_agreement(c10d::Store& store, const Place& place) {
  const auto size = std::to_string(place.world_size);
  const auto winner = store.compareSet("world_size", {}, bytes(size));
  std::string mistake;
  if (winner != bytes(size)) {
    mistake = fmt::format("machine {} counts {} ranks, another machine {}", place.machine, size,
                          std::string(winner.begin(), winner.end()));
  } else if (store.add(fmt::format("taken/{}", place.rank), 1) > 1) {
    mistake = fmt::format("two processes say that they are rank {}", place.rank);
  }
  if (mistake.empty()) return;
  call_off(store, mistake);
  throw UsageError(
      mistake,
      "every machine needs the same --distributed_nodes and --nproc_per_node, and its own "
      "--machine_id");
}

/// Rank 0: waits until all have signed in; else leaves the reason in the store for those that have.
void gather_everyone(c10d::Store& store, const Place& place, std::chrono::seconds timeout) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    std::vector<int> missing;
    for (int rank = 0; rank < place.world_size; ++rank) {
      if (!store.check({member_key(rank)})) missing.push_back(rank);
    }
    if (store.check({"failure"})) {
      let_others_read();
      throw OtherRankFailed(text_at(store, "failure"));
    }
    if (missing.empty()) break;
    if (Clock::now() >= deadline) {
      const auto reason = fmt::format("no word within {} s from {}", timeout.count(),
                                      name_missing_ranks(missing, place.local_world_size));
      call_off(store, reason);
      throw OtherRankFailed(reason);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  put(store, "everyone", "yes");
}

void wait_for_everyone(c10d::Store& store, std::chrono::seconds timeout) {
  try {
    store.wait({"everyone"}, timeout + std::chrono::seconds(10));
    if (text_at(store, "everyone") == "yes") return;
  } catch (const std::exception& problem) {
    throw OtherRankFailed(
        fmt::format("lost rank 0 while waiting for the other ranks: {}", first_line(problem)));
  }
  throw OtherRankFailed(text_at(store, "failure"));
}

std::shared_ptr<StoreServer> serve_store(const Place& place) {
  // Each rank has up to three connections: its own, its requests', and its stragglers'.
  const auto clients = 3 * static_cast<std::size_t>(place.world_size);
  try {
    return std::make_shared<StoreServer>(place.listener, clients);
  } catch (const std::exception& problem) {
    throw UsageError(
        fmt::format("rank 0 cannot listen on {}: {}", to_string(place.listener),
                    first_line(problem)),
        "is the port taken? --distributed_ip_and_port must name a free port of machine 0");
  }
}

c10::intrusive_ptr<c10d::Store> sign_in(const Place& place, std::chrono::seconds timeout) {
  std::shared_ptr<StoreServer> server;
  if (place.rank == 0 && !launcher_listens()) server = serve_store(place);
  if (!server && !wait_for_listener(place.listener, timeout)) {
    throw OtherRankFailed(fmt::format("rank 0 on machine 0 does not listen on {} (waited {} s)",
                                      to_string(place.listener), timeout.count()));
  }
  try {
    return open_store(place.listener, server, timeout);
  } catch (const NotOfThisRun& problem) {
    throw UsageError(
        problem.what(),
        fmt::format("is the port another program's, or does {} name another token there?",
                    kTokenFileVariable));
  } catch (const std::exception& problem) {
    throw OtherRankFailed("lost rank 0: " + first_line(problem));
  }
}

}  // namespace

std::string to_string(const Member& member) {
  return fmt::format("rank {} on machine {} ({})", member.rank, member.machine, member.host);
}

namespace {

/// Not every launcher says which machine a rank is on: hosts are machines then, in the order of
/// their first ranks.
void number_machines(std::vector<Member>& members) {
  const auto is_told = [](const Member& each) { return each.machine != 0; };
  if (std::any_of(members.begin(), members.end(), is_told)) return;
  std::map<std::string, int> numbers;
  for (Member& each : members) {
    each.machine = numbers.try_emplace(each.host, static_cast<int>(numbers.size())).first->second;
  }
}

/// All that `meet` does once this rank has the store.
void gather(Meeting& meeting, std::chrono::seconds timeout) {
  const Place& place = meeting.place;
  c10d::Store& store = *meeting.store;
  check_agreement(store, place);
  put(store, member_key(place.rank), write_member(this_member(place)));
  if (place.rank == 0) {
    gather_everyone(store, place, timeout);
  } else {
    wait_for_everyone(store, timeout);
  }
  for (int rank = 0; rank < place.world_size; ++rank) {
    meeting.members.push_back(read_member(rank, text_at(store, member_key(rank))));
  }
  number_machines(meeting.members);
}

}  // namespace

Meeting meet(const Place& place, std::chrono::seconds timeout) {
  Meeting meeting{place, {}, {}};
  if (place.world_size == 1) {
    meeting.members = {{0, place.machine, host_name(), "127.0.0.1"}};
    return meeting;
  }
  meeting.store = sign_in(place, timeout);
  try {
    gather(meeting, timeout);
  } catch (const UsageError&) {
    throw;
  } catch (const OtherRankFailed&) {
    throw;
  } catch (const std::exception& problem) {
    throw OtherRankFailed("lost rank 0 while the ranks met: " + first_line(problem));
  }
  return meeting;
}

c10::intrusive_ptr<c10d::Store> connect_store(const Endpoint& listener,
                                              std::chrono::milliseconds timeout) {
  return open_store(listener, nullptr, timeout);
}

void put(c10d::Store& store, const std::string& key, const std::string& text) {
  store.set(key, bytes(text));
}

std::string text_at(c10d::Store& store, const std::string& key) {
  const auto value = store.get(key);
  return {value.begin(), value.end()};
}

bool on_one_machine(const Member& one, const Member& other) {
  return one.machine == other.machine && one.host == other.host;
}

int count_machines(const std::vector<Member>& members) {
  std::set<std::pair<int, std::string>> machines;
  for (const Member& each : members) machines.emplace(each.machine, each.host);
  return static_cast<int>(machines.size());
}

std::string reachable_address(const Member& me, const std::vector<Member>& members) {
  if (!is_loopback(me.address)) return me.address;
  for (const Member& each : members) {
    if (!is_loopback(each.address)) return local_address_towards(each.address);
  }
  return me.address;
}

std::string first_line(const std::exception& problem) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&problem);
  const std::string text = torch_error ? torch_error->what_without_backtrace() : problem.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace dtool::trainer

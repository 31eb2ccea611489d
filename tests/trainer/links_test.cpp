// SPDX-License-Identifier: MIT
// Real links between ranks: the plans over shared memory and over TCP, and what a rank is told when
// a peer is gone or silent.
#include "trainer/comm/links.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "tests/trainer/ranks.h"
#include "trainer/comm/peer_link.h"
#include "trainer/launch/greeting.h"

using namespace dtool::trainer;

namespace {

constexpr auto kTimeout = std::chrono::seconds(30);

/// Small whole numbers, so that sums are exact in any order.
std::vector<float> addends(int rank, std::size_t count) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i % 97 + 1) * (rank + 1);
  return numbers;
}

std::vector<float> sum_over(int size, std::size_t count) {
  auto numbers = addends(0, count);
  for (float& each : numbers) each *= static_cast<float>(size * (size + 1) / 2);
  return numbers;
}

void expect_sums(Machines machines) {
  // The last is more than a ring of shared memory and a socket's buffer hold.
  for (const std::size_t count : {1UL, 5UL, 1000UL, 39760UL, 1500000UL}) {
    for (int size = 2; size <= 5; ++size) {
      on_every_rank(size, machines, [&](const Meeting& meeting) {
        Links links(meeting, kTimeout);
        const int rank = meeting.place.rank;
        const int peer = (rank + 1) % size;
        EXPECT_EQ(links.shares_memory_with(peer), machines == Machines::one);
        for (const Way each : kAlgorithms) {
          auto tensor = addends(rank, count);
          const auto elements = static_cast<std::int64_t>(count);
          links.perform(plan_all_reduce(each, rank, size, elements), tensor.data());
          EXPECT_TRUE(tensor == sum_over(size, count))
              << to_string(each) << ", " << size << " ranks, " << count << " numbers";
        }
      });
    }
  }
}

}  // namespace

TEST(Links, AllReduceThroughSharedMemory) {
  expect_sums(Machines::one);
}

TEST(Links, AllReduceThroughTcp) {
  expect_sums(Machines::one_a_rank);
}

/// As with `ulimit -f`.
TEST(Links, RanksOfOneMachineUseTcpWhereNoMemoryCanBeShared) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit low{sizeof(SharedLink) - 1, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &low);
  on_every_rank(3, Machines::one, [&](const Meeting& meeting) {
    Links links(meeting, kTimeout);
    const int rank = meeting.place.rank;
    EXPECT_FALSE(links.shares_memory_with((rank + 1) % 3));
    auto tensor = addends(rank, 1000);
    links.perform(plan_all_reduce(Way::ring, rank, 3, 1000), tensor.data());
    EXPECT_TRUE(tensor == sum_over(3, 1000));
  });
  setrlimit(RLIMIT_FSIZE, &before);
}

TEST(Links, AutoSumsOverAHundredRanksWithAFewLinksEach) {
  constexpr int kMany = 96;
  ASSERT_TRUE(sums_by_links(Way::automatic, at::kCPU, kMany));
  on_every_rank(kMany, Machines::one_a_rank, [&](const Meeting& meeting) {
    const int rank = meeting.place.rank;
    // 6 partners by halving or one with a folded tensor, and 2 neighbours.
    EXPECT_LE(peers_of(Way::automatic, rank, kMany).size(), 8U);
    GradientSum sum(meeting, Way::automatic, kTimeout);
    for (const std::size_t count : {1UL, 1000UL, 39760UL, (4UL << 18) + 97}) {
      auto numbers = addends(rank, count);
      sum.add_up(numbers.data(), static_cast<std::int64_t>(count));
      EXPECT_TRUE(numbers == sum_over(kMany, count)) << count << " numbers";
    }
  });
}

TEST(Links, AutoMayTakeEachAlgorithmThatItsPeersAreLinkedFor) {
  for (int size = 2; size <= 300; size += size < 70 ? 1 : 23) {
    for (int rank = 0; rank < size; ++rank) {
      const auto peers = peers_of(Way::automatic, rank, size);
      for (const std::int64_t bytes : {4, 16 << 10, (16 << 10) + 4, 4 << 20, (4 << 20) + 4}) {
        const auto algorithm = algorithm_for(Way::automatic, bytes);
        for (const int each : peers_in(plan_all_reduce(algorithm, rank, size, bytes / 4))) {
          EXPECT_TRUE(peers.contains(each)) << to_string(algorithm) << ' ' << rank << ' ' << size;
        }
      }
    }
  }
}

TEST(Links, APeerThatIsGoneIsNamed) {
  for (const Machines machines : {Machines::one, Machines::one_a_rank}) {
    on_every_rank(2, machines, [&](const Meeting& meeting) {
      Links links(meeting, kTimeout);
      if (meeting.place.rank == 1) return;  // and closes its links
      std::vector<float> tensor(1000);
      const Round round{kNobody, {}, 1, {0, 1000}, Combine::add};
      try {
        links.perform({round}, tensor.data());
        ADD_FAILURE() << "it received from nobody";
      } catch (const std::exception& problem) {
        EXPECT_EQ(problem.what(), to_string(meeting.members[1]) + " closed its connection");
      }
    });
  }
}

TEST(Links, WhatAPeerSentBeforeItWentIsStillReceived) {
  for (const Machines machines : {Machines::one, Machines::one_a_rank}) {
    on_every_rank(2, machines, [&](const Meeting& meeting) {
      Links links(meeting, kTimeout);
      std::vector<float> tensor = addends(1, 1000);
      if (meeting.place.rank == 1) {
        links.perform({{0, {0, 1000}, kNobody, {}, Combine::add}}, tensor.data());
        return;
      }
      meeting.store->wait({"test/done"});  // rank 1 is through, and its links are closed
      tensor.assign(1000, 0);
      links.perform({{kNobody, {}, 1, {0, 1000}, Combine::add}}, tensor.data());
      EXPECT_TRUE(tensor == addends(1, 1000));
    });
  }
}

TEST(Links, ASilentPeerIsNamedAfterTheTimeout) {
  for (const Machines machines : {Machines::one, Machines::one_a_rank}) {
    on_every_rank(2, machines, [&](const Meeting& meeting) {
      Links links(meeting, std::chrono::seconds(1));
      if (meeting.place.rank == 1) {
        meeting.store->wait({"test/done"});
        return;
      }
      std::vector<float> tensor(1000);
      try {
        links.perform({{kNobody, {}, 1, {0, 1000}, Combine::add}}, tensor.data());
        ADD_FAILURE() << "it received from nobody";
      } catch (const std::exception& problem) {
        EXPECT_EQ(problem.what(), to_string(meeting.members[1]) + " gave no answer for 1 s");
      }
    });
  }
}

TEST(Links, APeerWithPausesBelowTheTimeoutMayTakeLongerThanIt) {
  constexpr std::int64_t kPieces = 4;
  on_every_rank(2, Machines::one, [](const Meeting& meeting) {
    Links links(meeting, std::chrono::seconds(1));
    std::vector<float> tensor(kPieces);
    if (meeting.place.rank == 0) {
      links.perform({{kNobody, {}, 1, {0, kPieces}, Combine::add}}, tensor.data());
      return;
    }
    for (std::int64_t i = 0; i < kPieces; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      links.perform({{0, {i, i + 1}, kNobody, {}, Combine::add}}, tensor.data());
    }
  });
}

/// As where the name leads to another process's memory, in a container that numbers its own.
TEST(Links, MemoryWithoutTheOffersTokenIsNotShared) {
  on_every_rank(2, Machines::one, [](const Meeting& meeting) {
    if (meeting.place.rank == 1) {
      const Links links(meeting, kTimeout);
      EXPECT_FALSE(links.shares_memory_with(0));
      return;
    }
    FrontDoor door({"127.0.0.1", 0}, "link/0", 1);
    put(*meeting.store, "link/0", to_string(Endpoint{"127.0.0.1", door.port()}));
    std::vector<dtool::host::Caller> callers;
    while (callers.empty() && !door.watch().wait(std::chrono::seconds(30)).empty())
      callers = door.take();
    say(callers.at(0), "");
    const SharedMemory memory(sizeof(SharedLink));
    put(*meeting.store, "link/0/1", "1 " + memory.name());
    EXPECT_EQ(text_at(*meeting.store, "link/0/1/answer"), "no");
  });
}

/// The other side has seen nobody asleep, and wakes nobody.
TEST(PeerLink, DoesNotSleepOverWhatHappenedJustBefore) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
  SharedMemory memory(sizeof(SharedLink));
  auto same = SharedMemory::open(memory.name(), sizeof(SharedLink));
  PeerLink sender(dtool::host::Descriptor{sockets[0]}, std::move(memory), 0);
  PeerLink receiver(dtool::host::Descriptor{sockets[1]}, std::move(same.value()), 1);
  std::vector<float> numbers(FloatRing::kCapacity);

  EXPECT_TRUE(receiver.prepare_sleep(PeerLink::Awaited::numbers));
  receiver.finish_sleep(0);
  while (sender.try_send(numbers.data(), numbers.size()) > 0) {
  }
  EXPECT_FALSE(receiver.prepare_sleep(PeerLink::Awaited::numbers));
  receiver.finish_sleep(0);

  EXPECT_TRUE(sender.prepare_sleep(PeerLink::Awaited::room));
  sender.finish_sleep(0);
  receiver.try_receive(numbers.data(), 1, Combine::add);
  EXPECT_FALSE(sender.prepare_sleep(PeerLink::Awaited::room));
}

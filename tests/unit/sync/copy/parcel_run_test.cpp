// SPDX-License-Identifier: MIT
// Parcels to hosts: how many are kept on the launcher, what a slow host gets then, and how long
// hosts wait.
#include "sync/copy/parcel_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ssh/remote.h"
#include "ssh/wire/copy.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

constexpr std::uint64_t kEach = 1000;  // bytes of a parcel

/// The bytes that a host was sent of the only file, and its checksum.
struct Taken {
  std::string content;
  std::string sha256;
};

/// What a host makes of a package that is neither compressed nor sealed.
void take(const ssh::SharedBytes& package, Taken& taken) {
  host::FrameReader outer;
  package.make([&outer](std::string_view bytes) { outer.add(bytes); });
  host::FrameReader inner;
  while (const auto frame = outer.next()) inner.add(frame->body);
  while (const auto frame = inner.next()) {
    if (frame->kind == host::Kind::package_bytes) taken.content += frame->body;
    if (frame->kind == host::Kind::copy_sum)
      taken.sha256 = host::open<host::CopySum>(*frame).sha256;
  }
}

TEST(ParcelRun, ASlowHostGetsWhatIsKeptNoMoreMadeAgain) {
  tests::TemporaryFolder scratch;
  std::string text;
  for (int i = 0; text.size() < 10 * kEach; ++i) text += std::to_string(i) + " ";
  text.resize(10 * kEach);
  const CopyList list = list_sources({scratch.write("file", text).native()}, {});
  const auto parcels = cut_parcels(list, {{0, {{0, 0}}}, {1, {{0, 0}}}}, {kEach, kEach});
  ASSERT_EQ(parcels.size(), 10U);
  // It answers the first host to its end before the second one is asked for anything.
  tests::FakeRemote remote("fast,slow");
  for (const std::size_t host : {0, 1})
    remote.answers[host] = tests::answered(host::to_frame(host::ParcelReply{}));
  RunningSums sums;
  std::vector<ParcelHost> hosts = {{0}, {1}};
  constexpr std::size_t kKept = 3;
  struct Counted : ssh::Events {
    void on_progress(std::size_t, const ssh::Transferred&) override {
      most = std::max(most, run->kept());
    }
    const ParcelRun* run = nullptr;
    std::size_t most = 0;
  } counted;
  ParcelRun run(list, parcels, sums, hosts, Compression::none, counted, Relay::where_it_pays,
                kKept);
  counted.run = &run;
  run.run(remote);
  EXPECT_LE(counted.most, kKept);
  EXPECT_EQ(run.kept(), 0U);
  std::map<std::size_t, Taken> taken;
  for (const auto& round : remote.rounds) {
    for (const ssh::Task& task : round) {
      const auto& package = std::get<ssh::Command>(task.step).input_from;
      if (!package) continue;
      take(*package, taken[task.host]);
      ASSERT_TRUE(task.options && task.options->timeout) << "it may never answer";
      EXPECT_EQ(*task.options->timeout, std::chrono::minutes(10));
      EXPECT_EQ(task.options->follows, ssh::Follows::more);
    }
  }
  for (const std::size_t host : {0, 1}) {
    EXPECT_TRUE(hosts[host].result.ok()) << hosts[host].result.error;
    EXPECT_EQ(hosts[host].bytes, text.size());
    EXPECT_EQ(taken[host].content, text);
    EXPECT_EQ(taken[host].sha256, sum_of_file(list, 0));
  }
}

TEST(PatienceFor, AFileWhoseBeginningIsThereIsWaitedForAsLongAsReadingItTakes) {
  CopyList list;
  for (const std::uint64_t size : {std::uint64_t{5'000'000'000}, std::uint64_t{90'000'000'000}}) {
    host::CopyEntry entry;
    entry.name = "file";
    entry.size = size;
    list.entries.push_back(entry);
  }
  using std::chrono::seconds;
  EXPECT_EQ(patience_for(list, {}), seconds(300));
  EXPECT_EQ(patience_for(list, {{{0, 0, 9}, {1, 0, 9}}, {0}, 18}), seconds(300));
  EXPECT_EQ(patience_for(list, {{{0, 7, 9}, {1, 0, 9}}, {0}, 18}), seconds(300 + 500));
  EXPECT_EQ(patience_for(list, {{{0, 7, 9}, {1, 7, 9}}, {0}, 18}), seconds(300 + 9000));
}

}  // namespace
}  // namespace dtool::tree_sync

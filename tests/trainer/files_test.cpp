// SPDX-License-Identifier: MIT
// Folders of checkpoints, idx, metrics and addresses: what does not need LibTorch and touches files
// or the network.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "killfiles/whole_file.h"
#include "tests/trainer/own_folder.h"
#include "tests/unit/disk_steps.h"
#include "trainer/data/idx.h"
#include "trainer/launch/network.h"
#include "trainer/report/metrics.h"
#include "trainer/report/written_file.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/checkpoint_writer.h"

using namespace dtool::trainer;
using dtool::killfiles::read_whole;

namespace {

class Files : public OwnFolder {
 protected:
};

/// The lowest number that a file would get now: it grows with each one that is left open.
int next_descriptor() {
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(next);
  return next;
}

/// An IDX file's mistake when its content is `content`.
std::string idx_mistake(const std::filesystem::path& file, const std::string& content) {
  std::ofstream(file, std::ios::binary) << content;
  try {
    read_idx(file);
  } catch (const UsageError& problem) {
    return std::string(problem.what()).substr(file.string().size());
  }
  return "no mistake";
}

}  // namespace

TEST_F(Files, ACheckpointIsWrittenWholeAndNothingElseStays) {
  const auto file = checkpoint_file(folder_, 3);
  write_whole(file, "first");
  write_whole(file, std::string("se\0cond", 7));
  EXPECT_EQ(read_whole(file), std::string("se\0cond", 7));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, ACheckpointIsOnTheDiskBeforeItHasItsNameAndItsNameBeforeTheCallReturns) {
  const std::filesystem::path file = checkpoint_file(folder_, 7);
  const dtool::tests::DiskSteps steps;
  write_whole(file, "weights");
  EXPECT_TRUE(steps.are_flushed_before("", "name ", "")) << steps.text();
  EXPECT_TRUE(steps.text().ends_with("flush " + std::filesystem::path(folder_).string() + "\n"))
      << steps.text();
}

TEST_F(Files, ACheckpointThatDoesNotReachTheDiskIsNoneThoughItCouldBeWritten) {
  const auto file = checkpoint_file(folder_, 7);
  dtool::tests::DiskSteps steps;
  steps.fail_flushes_of(".partial");
  EXPECT_THROW(write_whole(file, "weights"), std::system_error);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Files, ACheckpointIsForEverybodyToReadAndItsFilesAreClosed) {
  const int next = next_descriptor();
  const mode_t before = umask(022);
  write_whole(checkpoint_file(folder_, 3), "x");
  umask(before);
  EXPECT_EQ(static_cast<int>(std::filesystem::status(checkpoint_file(folder_, 3)).permissions()),
            0644);
  EXPECT_EQ(next_descriptor(), next) << "a file stays open";
}

/// Schedulers start processes so.
TEST_F(Files, ACheckpointIsWrittenWhereStandardInputIsClosed) {
  EXPECT_EXIT(
      {
        close(STDIN_FILENO);
        write_whole(checkpoint_file(folder_, 3), "x");
        _exit(list_checkpoints(folder_).size() == 1 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(Files, ACheckpointForWhichThereIsNoRoomLeavesTheFormerOneAndNothingElse) {
  const auto file = checkpoint_file(folder_, 3);
  write_whole(file, "former");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1000, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(write_whole(file, std::string(5000, 'x')), std::system_error);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(read_whole(file), "former");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, AWriterThatFailsLeavesTheFormerFile) {
  const auto file = checkpoint_file(folder_, 3);
  write_whole(file, "former");
  const auto fail = [](const Sink& sink) {
    sink("half");
    throw std::runtime_error("out of paper");
  };
  const int next = next_descriptor();
  EXPECT_THROW(write_whole(file, fail), std::runtime_error);
  EXPECT_EQ(next_descriptor(), next) << "a file stays open";
  EXPECT_EQ(read_whole(file), "former");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  write_whole(file, [](const Sink& sink) {
    for (const char* part : {"one, ", "", "two"}) sink(part);
  });
  EXPECT_EQ(read_whole(file), "one, two");
}

TEST_F(Files, ACheckpointOfAFormerFormatIsNotCounted) {
  EXPECT_FALSE(former_checkpoint(folder_ / "nowhere"));
  EXPECT_FALSE(former_checkpoint(folder_));
  std::ofstream(folder_ / "best.pt") << "x";
  std::ofstream(folder_ / "step_x.pt") << "x";
  EXPECT_FALSE(former_checkpoint(folder_));
  std::ofstream(folder_ / "step_000000004.pt") << "x";
  EXPECT_EQ(former_checkpoint(folder_), folder_ / "step_000000004.pt");
  EXPECT_TRUE(checkpoints_newest_first(folder_).empty());
}

TEST_F(Files, AFolderThatIsNotThereHasNoCheckpointAndTakesNone) {
  EXPECT_TRUE(checkpoints_newest_first(folder_ / "nowhere").empty());
  EXPECT_ANY_THROW(write_whole(folder_ / "nowhere/step_00001.safetensors", "x"));
}

TEST_F(Files, AFolderThatCannotBeReadIsNotOneWithoutCheckpoints) {
  const auto loop = folder_ / "loop";
  std::filesystem::create_symlink(loop, loop);
  EXPECT_THROW(list_checkpoints(loop), std::system_error);
  EXPECT_THROW(checkpoints_newest_first(loop), std::system_error);
  EXPECT_THROW(former_checkpoint(loop), std::system_error);
  std::filesystem::create_symlink(loop, checkpoint_file(folder_, 3));
  EXPECT_THROW(list_checkpoints(folder_), std::system_error);
}

TEST_F(Files, ACheckpointsNameHasItsStep) {
  EXPECT_EQ(checkpoint_file("c", 1876), "c/step_000001876.safetensors");
  EXPECT_EQ(best_checkpoint_file("c"), "c/best.safetensors");
}

TEST_F(Files, CheckpointsAreListedByStepAndWhatHasAlikeNameIsNone) {
  for (const int step : {30, 4, 1, 200, 17}) write_whole(checkpoint_file(folder_, step), "x");
  for (const char* name : {"stem_000000002.safetensors", "step_5.safetensorz", "step_x.safetensors",
                           "step_.safetensors", "step_12x.safetensors"}) {
    std::ofstream(folder_ / name) << "x";
  }
  // As one that its writer thins out between two looks.
  std::filesystem::create_symlink(folder_ / "gone", checkpoint_file(folder_, 6));
  std::vector<std::int64_t> steps;
  for (const auto& each : list_checkpoints(folder_)) steps.push_back(each.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 4, 17, 30, 200}));
}

TEST_F(Files, OfCheckpointsOfOneMomentTheLaterStepIsTheNewer) {
  const auto moment = std::filesystem::file_time_type::clock::now();
  for (const int step : {2, 9, 5}) {
    write_whole(checkpoint_file(folder_, step), "x");
    std::filesystem::last_write_time(checkpoint_file(folder_, step), moment);
  }
  std::vector<std::int64_t> steps;
  for (const auto& each : checkpoints_newest_first(folder_)) steps.push_back(each.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{9, 5, 2}));
}

TEST_F(Files, ThinningOutKeepsTheLastOfMany) {
  for (int step = 1; step <= 20; ++step) write_whole(checkpoint_file(folder_, step), "x");
  thin_out(folder_, 20, 3);
  std::vector<std::int64_t> steps;
  for (const auto& each : list_checkpoints(folder_)) steps.push_back(each.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{18, 19, 20}));
}

TEST_F(Files, TheLatestCheckpointIsTheOneWrittenLast) {
  using namespace std::chrono_literals;
  write_whole(checkpoint_file(folder_, 9), "of a run before");
  write_whole(checkpoint_file(folder_, 1), "of this run");
  std::ofstream(folder_ / "step_00010.safetensors.partial") << "half";
  std::ofstream(folder_ / "notes.txt") << "mine";
  const auto now = std::filesystem::last_write_time(checkpoint_file(folder_, 1));
  std::filesystem::last_write_time(checkpoint_file(folder_, 9), now - 60s);
  EXPECT_EQ(checkpoints_newest_first(folder_).front().file, checkpoint_file(folder_, 1));
}

TEST_F(Files, ThinningOutKeepsTheNewestAndOtherPeoplesFiles) {
  for (const int step : {1, 2, 3, 4, 9}) write_whole(checkpoint_file(folder_, step), "x");
  std::ofstream(folder_ / "step_00004.safetensors.partial") << "half";
  std::ofstream(folder_ / "notes.txt") << "mine";
  thin_out(folder_, 4, 2);
  for (const int step : {1, 2}) EXPECT_FALSE(exists(checkpoint_file(folder_, step))) << step;
  for (const int step : {3, 4, 9}) EXPECT_TRUE(exists(checkpoint_file(folder_, step))) << step;
  EXPECT_FALSE(exists(folder_ / "step_00004.safetensors.partial"));
  EXPECT_TRUE(exists(folder_ / "notes.txt"));
}

TEST_F(Files, AnIdxHeaderThatPromisesTooMuchIsRefusedBeforeMemoryIsTaken) {
  using namespace std::string_literals;
  const std::string images = "\0\0\x08\x03"s;
  EXPECT_EQ(idx_mistake(folder_ / "huge", images + "\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x02"s),
            ": its header says more than 16 GiB");
  EXPECT_EQ(idx_mistake(folder_ / "large", images + "\0\0\xff\xff\0\0\x40\0\0\0\0\x0f"s),
            ": truncated: its content should take 16105881600 bytes, the file has 16");
}

TEST_F(Files, AnIdxFileOfAnotherKindIsRefusedWithWhatItHolds) {
  using namespace std::string_literals;
  const auto refused = [&](const std::string& content) {
    return idx_mistake(folder_ / "data", content);
  };
  EXPECT_EQ(refused("\0\0\x0d\x01\0\0\0\1\0\0\0\0"s), ": holds 32-bit floats, not unsigned bytes");
  EXPECT_EQ(refused("\0\0\x09\x01\0\0\0\1\0"s), ": holds signed bytes, not unsigned bytes");
  EXPECT_EQ(refused("\0\0\x0b\x01\0\0\0\0"s), ": holds 16-bit whole numbers, not unsigned bytes");
  EXPECT_EQ(refused("\0\0\x0c\x01\0\0\0\0"s), ": holds 32-bit whole numbers, not unsigned bytes");
  EXPECT_EQ(refused("\0\0\x0e\x01\0\0\0\0"s), ": holds 64-bit floats, not unsigned bytes");
  EXPECT_EQ(refused("\0\0\x0a\x01\0\0\0\0"s), ": not an IDX file: magic number 0x00000a01");
  EXPECT_EQ(refused("\0\0\x08\0"s), ": not an IDX file: magic number 0x00000800");
  EXPECT_EQ(refused("<html>not found</html>"), ": not an IDX file: magic number 0x3c68746d");
  EXPECT_EQ(refused(""), ": truncated: the magic number should take 4 bytes, 0 are there");
  EXPECT_EQ(refused("\0\0\x08\x02\0\0\0\1\0"s),
            ": truncated: a dimension should take 4 bytes, 1 are there");
  EXPECT_EQ(refused("\0\0\x08\x01\0\0\0\3ab"s),
            ": truncated: its content should take 3 bytes, 2 are there");
  EXPECT_EQ(refused("\0\0\x08\x01\0\0\0\3abcd"s), ": longer than the 3 bytes that its header says");
}

TEST_F(Files, AnIdxFileIsReadAsItIs) {
  const auto file = folder_ / "images";
  std::ofstream(file, std::ios::binary) << std::string(
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02"
      "abcd",
      20);
  const auto array = read_idx(file);
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 1, 2}));
  EXPECT_EQ(array.values, (std::pmr::vector<std::uint8_t>{'a', 'b', 'c', 'd'}));
}

TEST(Metrics, ALineIsJson) {
  EXPECT_EQ(
      to_json(
          {{"epoch", std::int64_t{3}}, {"loss", 0.25}, {"bad", std::nan("")}, {"text", "a\"b\n"}}),
      R"({"epoch": 3, "loss": 0.25, "bad": null, "text": "a\"b\n"})");
  EXPECT_EQ(to_json({{"resumed_from", "a\xff\\\u00e4\x01"}}),
            "{\"resumed_from\": \"a\uFFFD\\\\\u00e4\\u0001\"}");
}

TEST(Endpoint, IsReadInEveryForm) {
  EXPECT_EQ(parse_endpoint("10.0.0.1:29500"), (Endpoint{"10.0.0.1", 29500}));
  EXPECT_EQ(parse_endpoint("node1:80"), (Endpoint{"node1", 80}));
  EXPECT_EQ(parse_endpoint("[fd00::1]:29500"), (Endpoint{"fd00::1", 29500}));
  for (const char* text : {"[fd00::1]:29500", "node1:80"})
    EXPECT_EQ(to_string(parse_endpoint(text)), text);
  for (const char* text :
       {"", "node1", "node1:", ":80", "node1:0", "node1:65536", "node1:8o", "fd00::1:80"}) {
    EXPECT_THROW(parse_endpoint(text), UsageError) << text;
  }
}

TEST(Endpoint, TheRouteToLoopbackIsLoopback) {
  EXPECT_EQ(local_address_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(interface_of("127.0.0.1"), "lo");
  EXPECT_TRUE(is_loopback("127.0.1.1"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
  EXPECT_THROW(local_address_towards("no-such-host.invalid"), std::runtime_error);
}

TEST(Endpoint, NobodyListensOnAReservedPort) {
  const ReservedPort port;
  EXPECT_NE(port.number(), 0);
  EXPECT_FALSE(wait_for_listener({"127.0.0.1", port.number()}, std::chrono::milliseconds(1)));
}

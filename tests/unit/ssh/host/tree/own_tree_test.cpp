// SPDX-License-Identifier: MIT
// A run's own tree: what changes in the code folder does not change it, and what processes write in
// it is kept when it goes.
#include "ssh/host/tree/own_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "killfiles/channel/sha256.h"
#include "ssh/host/tree/answer_tree.h"
#include "ssh/host/tree/kept_copy.h"
#include "ssh/wire/push.h"
#include "sync/package_writer.h"
#include "tests/unit/disk_steps.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

struct SentEntry {
  std::string name;
  std::string content;
  std::string target = {};  ///< of a link
};

std::string package_with(const std::vector<SentEntry>& files) {
  std::string bytes;
  const ssh::SharedBytes::Write write = [&bytes](std::string_view more) { bytes += more; };
  tree_sync::PackageWriter writer(write, tree_sync::Compression::zstd, "", 0);
  for (const SentEntry& each : files) {
    CopyEntry entry;
    entry.name = each.name;
    entry.mode = 0640;
    entry.seconds = 1'000'000'000;
    entry.size = each.content.size();
    entry.target = each.target;
    writer.add(to_frame(CopyPiece{entry, 0, entry.size}));
    if (!entry.target.empty()) continue;
    if (!each.content.empty()) writer.add(to_frame(Kind::package_bytes, each.content));
    writer.add(to_frame(CopySum{to_hex(sha256(each.content))}));
  }
  writer.finish();
  return bytes;
}

class OwnTreeTest : public testing::Test {
 protected:
  /// Sends files to ~/code, and makes the run's tree of it.
  TreeReply send(const std::vector<SentEntry>& files, const std::string& run, char tree = 'a',
                 const std::string& basis = {}) {
    if (make_run_folder_) fs::create_directories(scratch_.path() / ".dtool/runs" / run);
    const fs::path path = scratch_.write("package", package_with(files));
    const Descriptor input(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    FrameInput frames(input.get());
    TreeRequest request;
    request.folder = "~/code";
    request.aside = kComing;
    request.tree = std::string(64, tree);
    request.basis = basis;
    request.has_package = true;
    request.is_compressed = true;
    request.patience_ms = 1000;
    request.own = OwnTree{"~/.dtool/runs/" + run,
                          "outputs/",
                          "~/code/outputs/" + run + "/machine0.written",
                          "",
                          {"/home/me/project"},
                          {"empty/inner", "sub/empty", "there", "../../out", "sub/b"}};
    return answer_tree(request, frames);
  }
  static std::vector<SentEntry> many() {
    std::vector<SentEntry> files;
    for (int i = 10000; i < 11001; ++i)
      files.push_back({"file" + std::to_string(i), "content " + std::to_string(i)});
    return files;
  }
  static std::string tree(const std::string& run) { return ".dtool/runs/" + run + "/tree/"; }
  struct stat at(const std::string& name) const {
    struct stat found {};
    EXPECT_EQ(::lstat((scratch_.path() / name).c_str(), &found), 0) << name;
    return found;
  }
  bool has(const std::string& name) const {
    return fs::exists(fs::symlink_status(scratch_.path() / name));
  }

  tests::TemporaryFolder scratch_;
  tests::TemporaryVariable home_{"HOME", scratch_.path()};
  bool make_run_folder_ = true;
};

TEST_F(OwnTreeTest, EditsInTheCodeFolderDoNotReachIt) {
  send({{"a", "sent"}, {"link", "", "a"}, {"sub/b", "sent too"}}, "x_1");
  scratch_.write("code/a", "edited in place");
  scratch_.write("new", "replaced");
  fs::rename(scratch_.path() / "new", scratch_.path() / "code/sub/b");
  EXPECT_EQ(scratch_.read(tree("x_1") + "a"), "sent");
  EXPECT_EQ(scratch_.read(tree("x_1") + "sub/b"), "sent too");
  EXPECT_EQ(fs::read_symlink(scratch_.path() / (tree("x_1") + "link")), "a");
  EXPECT_EQ(at(tree("x_1") + "a").st_mode & 07777U, 0640U);
  EXPECT_EQ(at(tree("x_1") + "a").st_mtim.tv_sec, 1'000'000'000);
}

TEST_F(OwnTreeTest, ItHasItsNameOnceItsFilesAreOnTheDisk) {
  {
    const tests::DiskSteps steps;
    send({{"a", "one"}}, "x_1");
    const std::string text = steps.text();
    const auto named = text.find("name " + scratch_.path().string() + "/.dtool/runs/x_1/.tree.");
    const auto flushed = text.find("flush " + scratch_.path().string() + "/.dtool/runs/x_1/.tree.");
    EXPECT_NE(named, text.npos);
    EXPECT_LT(flushed, named) << text;
  }
  const tests::DiskSteps steps;
  send(many(), "x_2", 'b', std::string(64, 'a'));
  EXPECT_TRUE(steps.are_flushed_before("file10000", "name ", ".copied.new"));
}

TEST_F(OwnTreeTest, BitsThatActForAFilesOwnerStayInTheCodeFolder) {
  fs::create_directories(scratch_.path() / "copies");
  ::chmod(scratch_.write("code/program").c_str(), 06750);
  Inside from(scratch_.path() / "code");
  Inside to(scratch_.path() / "copies");
  copy_file(from, to, "program");
  EXPECT_EQ(at("copies/program").st_mode & 07777U, 0750U);
}

TEST_F(OwnTreeTest, EachRunHasTheTreeThatWasSentForIt) {
  send({{"a", "one"}}, "x_1");
  const TreeReply reply = send({{"a", "two"}}, "x_2", 'b', std::string(64, 'a'));
  ASSERT_TRUE(reply.placed && reply.placed->is_whole);
  EXPECT_EQ(scratch_.read(tree("x_1") + "a"), "one");
  EXPECT_EQ(scratch_.read(tree("x_2") + "a"), "two");
}

TEST_F(OwnTreeTest, LinksLeadToWhatWasNotSent) {
  send({{"out", "", "../elsewhere"}, {"sub/b", "sent"}}, "x_0");
  scratch_.write("code/data/set", "data");
  scratch_.write("code/sub/weights", "weights");
  send({{"out", "", "../elsewhere"}, {"sub/b", "sent"}}, "x_1");
  const fs::path code = scratch_.path() / "code";
  EXPECT_EQ(scratch_.read(tree("x_1") + "data/set"), "data");
  EXPECT_EQ(scratch_.read(tree("x_1") + "sub/weights"), "weights");
  EXPECT_EQ(fs::read_symlink(scratch_.path() / (tree("x_1") + "data")), code / "data");
  // Outputs go where they are looked for, though nobody has made that folder yet.
  EXPECT_EQ(fs::read_symlink(scratch_.path() / (tree("x_1") + "outputs")), code / "outputs");
  // A link that leaves the code leads where it led.
  EXPECT_EQ(fs::read_symlink(scratch_.path() / (tree("x_1") + "out")), code / "../elsewhere");
}

TEST_F(OwnTreeTest, ItHasEmptyFoldersThatTheCodeFolderLacks) {
  send({{"sub/b", "sent"}}, "x_0");
  scratch_.write("code/there/file", "not sent");
  send({{"sub/b", "sent"}}, "x_1");
  const fs::path own = scratch_.path() / tree("x_1");
  EXPECT_TRUE(fs::is_empty(own / "empty/inner"));
  EXPECT_TRUE(fs::is_empty(own / "sub/empty"));
  EXPECT_EQ(fs::read_symlink(own / "there"), scratch_.path() / "code/there");
  EXPECT_EQ(scratch_.read(tree("x_1") + "sub/b"), "sent");
  EXPECT_FALSE(has(".dtool/out") || has(".dtool/runs/out") || has("code/empty"));
}

TEST_F(OwnTreeTest, LinksToTheCodeFolderLeadIntoTheTree) {
  const std::string code = (scratch_.path() / "code").native();
  const std::vector<SentEntry> files = {{"all", "", "/home/me/project/"},
                                        {"back", "", "../project/sub/b"},
                                        {"here", "", code + "/sub/b"},
                                        {"other", "", "/home/me/projects/b"},
                                        {"sub/b", "sent"},
                                        {"sub/c/far", "", "/home/me/./project/data/../sub/b"},
                                        {"sub/unsent", "", "/home/me/project/data/set"},
                                        {"sub/up", "", "../../code/sub/b"}};
  send(files, "x_0");
  scratch_.write("code/data/set", "data");
  send(files, "x_1");
  scratch_.write("code/sub/b", "edited");
  const auto target = [&](const std::string& name) {
    return fs::read_symlink(scratch_.path() / (tree("x_1") + name)).native();
  };
  EXPECT_EQ(target("all"), ".");
  EXPECT_EQ(target("back"), "sub/b");
  EXPECT_EQ(target("here"), "sub/b");
  EXPECT_EQ(target("other"), "/home/me/projects/b");
  EXPECT_EQ(target("sub/c/far"), "../../sub/b");
  EXPECT_EQ(target("sub/up"), "../sub/b");
  for (const char* name : {"back", "here", "sub/c/far", "sub/up"})
    EXPECT_EQ(scratch_.read(tree("x_1") + name), "sent") << name;
  EXPECT_EQ(scratch_.read(tree("x_1") + "sub/unsent"), "data");
}

TEST_F(OwnTreeTest, WhatARunWritesIntoASharedFileDoesNotReachTheNextThoughItSetsTheTimeBack) {
  send(many(), "x_1");
  const fs::path file = scratch_.path() / (tree("x_1") + "file10000");
  const struct stat before = at(tree("x_1") + "file10000");
  scratch_.write(tree("x_1") + "file10000", "CONTENT 10000");
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  send(many(), "x_2");
  EXPECT_EQ(scratch_.read(tree("x_2") + "file10000"), "content 10000");
  EXPECT_EQ(scratch_.read(tree("x_1") + "file10000"), "CONTENT 10000") << "its own tree is its own";
}

TEST_F(OwnTreeTest, OnlyLinksThatCameOrWentAreNoChangeOfASharedFile) {
  send(many(), "x_1");
  send(many(), "x_2");
  const struct stat first = at(tree("x_2") + "file10000");
  remove_run({"x_1", true});
  send(many(), "x_3");
  EXPECT_EQ(first.st_ino, at(tree("x_3") + "file10000").st_ino);
  EXPECT_EQ(at(tree("x_3") + "file10000").st_nlink, 3U);
}

TEST_F(OwnTreeTest, LargeTreesOfRunsShareOneCopyThatEditorsDoNotKnow) {
  send(many(), "x_1");
  send(many(), "x_2");
  const struct stat first = at(tree("x_1") + "file10000");
  EXPECT_EQ(first.st_ino, at(tree("x_2") + "file10000").st_ino);
  EXPECT_EQ(first.st_nlink, 3U);
  EXPECT_NE(first.st_ino, at("code/file10000").st_ino);
  scratch_.write("code/file10000", "edited in place");
  EXPECT_EQ(scratch_.read(tree("x_1") + "file10000"), "content 10000");
}

TEST_F(OwnTreeTest, ACopyThatWasEditedByHandIsNotUsed) {
  send(many(), "x_1");
  std::string copy;
  for (const auto& each : fs::directory_iterator(scratch_.path() / ".dtool/trees"))
    if (each.path().extension() == ".copy") copy = each.path();
  ASSERT_NE(copy, "");
  std::ofstream(copy + "/file10000") << "spoilt";
  fs::remove(copy + "/file10001");
  std::ofstream(copy + "/stranger") << "stranger";
  send(many(), "x_2");
  EXPECT_EQ(scratch_.read(tree("x_2") + "file10000"), "content 10000");
  EXPECT_EQ(scratch_.read(tree("x_2") + "file10001"), "content 10001");
  EXPECT_FALSE(has(tree("x_2") + "stranger"));
}

TEST_F(OwnTreeTest, PermissionsThatARunChangedDoNotReachTheNext) {
  send(many(), "x_1");
  fs::permissions(scratch_.path() / (tree("x_1") + "file10000"), static_cast<fs::perms>(0));
  send(many(), "x_2");
  EXPECT_EQ(at(tree("x_2") + "file10000").st_mode & 07777U, 0640U);
  EXPECT_EQ(scratch_.read(tree("x_2") + "file10000"), "content 10000");
}

TEST_F(OwnTreeTest, WhatIsKeptOfOneRunIsNotChangedByAnother) {
  send(many(), "x_1");
  send(many(), "x_2");
  std::ofstream(scratch_.path() / (tree("x_1") + "file10000"), std::ios::app) << ", one";
  EXPECT_NE(remove_run({"x_1", true}).kept, "");
  std::ofstream(scratch_.path() / (tree("x_2") + "file10000"), std::ios::app) << ", two";
  EXPECT_EQ(scratch_.read("code/outputs/x_1/machine0.written/file10000"), "content 10000, one");
}

TEST_F(OwnTreeTest, FilesDeeperThanAPathMayBeAreKept) {
  send({{"a", "sent"}}, "x_1");
  Inside inside((scratch_.path() / tree("x_1")).native());
  std::string name;
  for (int i = 0; i < 30; ++i) name += std::string(200, 'x') + "/";
  name += "result";
  {
    const Inside::Spot spot = inside.find(name, Inside::Way::made);
    const Descriptor file(::openat(spot.folder, spot.name, O_WRONLY | O_CREAT, 0600));
    ASSERT_TRUE(file.is_open());
  }
  const RemoveReply reply = remove_run({"x_1", true});
  EXPECT_TRUE(Inside(reply.kept).look(name));
  EXPECT_FALSE(has(".dtool/runs/x_1"));
  Inside(scratch_.path()).remove_folder("code");  // std::filesystem cannot
}

TEST_F(OwnTreeTest, AFolderThatCannotBeReadIsNotTakenForEmpty) {
  send({{"a", "sent"}}, "x_1");
  scratch_.write(tree("x_1") + "out/model", "precious");
  const fs::path out = scratch_.path() / (tree("x_1") + "out");
  fs::permissions(out, static_cast<fs::perms>(0300));
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::chown(out.c_str(), 65534, 65534), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      // Another user may enter the folders above, and not read this one.
      for (fs::path each = out.parent_path(); each != scratch_.path().parent_path();
           each = each.parent_path())
        if (::chown(each.c_str(), 65534, 65534) != 0) ::_exit(2);
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(3);
      try {
        remove_run({"x_1", true});
      } catch (const Refused&) {
        ::_exit(0);
      }
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  } else {
    EXPECT_THROW(remove_run({"x_1", true}), Refused);
  }
  fs::permissions(out, static_cast<fs::perms>(0700));
  EXPECT_EQ(scratch_.read(tree("x_1") + "out/model"), "precious");
}

TEST_F(OwnTreeTest, WhatProcessesWroteIsKeptWhenItGoes) {
  send({{"a", "sent"}, {"b", "sent"}, {"sub/c", "sent"}}, "x_1");
  scratch_.write(tree("x_1") + "b", "rewritten");
  scratch_.write(tree("x_1") + "sub/new/result", "result");
  scratch_.write(tree("x_1") + "__pycache__/a.pyc", "bytecode");
  fs::create_symlink("result", scratch_.path() / (tree("x_1") + "sub/new/latest"));
  const RemoveReply reply = remove_run({"x_1", true});
  EXPECT_TRUE(reply.had_tree);
  const std::string written = "code/outputs/x_1/machine0.written/";
  EXPECT_EQ(reply.kept + "/", (scratch_.path() / written).native());
  EXPECT_EQ(scratch_.read(written + "b"), "rewritten");
  EXPECT_EQ(scratch_.read(written + "sub/new/result"), "result");
  EXPECT_EQ(fs::read_symlink(scratch_.path() / (written + "sub/new/latest")), "result");
  EXPECT_FALSE(has(written + "a"));
  EXPECT_FALSE(has(written + "sub/c"));
  EXPECT_FALSE(has(written + "__pycache__"));
  EXPECT_FALSE(has(".dtool/runs/x_1"));
  EXPECT_EQ(scratch_.read("code/b"), "sent");
}

TEST_F(OwnTreeTest, WhatProcessesWriteIsKeptWhileTheyWrite) {
  send({{"a", "sent"}}, "x_1");
  EXPECT_EQ(keep_written("x_1"), "");
  scratch_.write(tree("x_1") + "log", "one");
  EXPECT_NE(keep_written("x_1"), "");
  const std::string kept = "code/outputs/x_1/machine0.written/log";
  EXPECT_EQ(scratch_.read(kept), "one");
  scratch_.write(tree("x_1") + "log", "one two");
  EXPECT_EQ(scratch_.read(kept), "one two");
  scratch_.write(tree("x_1") + "coming", "three");
  fs::rename(scratch_.path() / (tree("x_1") + "coming"), scratch_.path() / (tree("x_1") + "log"));
  keep_written("x_1");
  EXPECT_EQ(scratch_.read(kept), "three");
  EXPECT_TRUE(has(tree("x_1") + "a"));
}

TEST_F(OwnTreeTest, ATreeAloneGoesAndTheStateOfTheRunStays) {
  send({{"a", "sent"}}, "x_1");
  scratch_.write(".dtool/runs/x_1/machine0/exit_code", "0");
  EXPECT_TRUE(remove_run({"x_1", false}).had_tree);
  EXPECT_FALSE(has(tree("x_1")));
  EXPECT_EQ(scratch_.read(".dtool/runs/x_1/machine0/exit_code"), "0");
  EXPECT_FALSE(remove_run({"x_1", false}).had_tree);
}

TEST_F(OwnTreeTest, TreesOfRunsThatEndedLongAgoGo) {
  for (const std::string run : {"old", "new", "runs"}) send({{"a", "sent"}}, run);
  scratch_.write(tree("old") + "result", "result");
  const fs::path runs = scratch_.path() / ".dtool/runs";
  for (const std::string file : {"old/machine0/exit_code", "old/machine1/killed",
                                 "new/machine0/exit_code", "runs/machine0/process"})
    scratch_.write(runs / file, "0");
  const auto days_ago = [](int days) {
    return fs::file_time_type::clock::now() - std::chrono::hours(24 * days);
  };
  for (const std::string file : {"old/machine0/exit_code", "old/machine1/killed"})
    fs::last_write_time(runs / file, days_ago(31));
  fs::last_write_time(runs / "new/machine0/exit_code", days_ago(29));
  fs::last_write_time(runs / "runs/machine0/process", days_ago(90));
  remove_old_trees();
  for (int tries = 0; tries < 1000 && has(tree("old")); ++tries) ::usleep(10'000);
  EXPECT_FALSE(has(tree("old")));
  EXPECT_TRUE(has(".dtool/runs/old/machine0/exit_code"));
  EXPECT_EQ(scratch_.read("code/outputs/old/machine0.written/result"), "result");
  EXPECT_TRUE(has(tree("new") + "a"));
  EXPECT_TRUE(has(tree("runs") + "a"));
}

TEST_F(OwnTreeTest, WithoutItsRecordNothingOfItIsDeleted) {
  send({{"a", "sent"}}, "x_1");
  for (const auto& each : fs::directory_iterator(scratch_.path() / tree("x_1")))
    if (each.path().filename().native().starts_with(".~dtool~")) fs::remove(each);
  scratch_.write(tree("x_1") + "result", "result");
  EXPECT_THROW(remove_run({"x_1", true}), Refused);
  EXPECT_EQ(scratch_.read(tree("x_1") + "result"), "result");
}

TEST_F(OwnTreeTest, ARunThatWasDeletedMeanwhileGetsNone) {
  make_run_folder_ = false;
  EXPECT_THROW(send({{"a", "sent"}}, "x_1"), Refused);
  EXPECT_FALSE(has(".dtool/runs/x_1"));
}

TEST_F(OwnTreeTest, NoOtherFolderIsTakenForARuns) {
  scratch_.write("precious", "precious");
  for (const std::string id : {"", ".", "..", "../..", "a/b"})
    EXPECT_THROW(remove_run({id, true}), BadMessage) << id;
  EXPECT_EQ(scratch_.read("precious"), "precious");
}

}  // namespace
}  // namespace dtool::host

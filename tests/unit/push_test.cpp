#include "sync/push.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>

#include "ssh/fleet.h"
#include "ssh/quote.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// Remembers what it was told.
struct Told : PushListener {
  void on_bytes(std::size_t host, std::uint64_t count) override { bytes[host] = count; }
  void on_result(std::size_t host, const ssh::HostResult& result, const Pushed& what) override {
    order.push_back(host);
    results[host] = result;
    pushed[host] = what;
  }

  std::vector<std::size_t> order;
  std::map<std::size_t, std::uint64_t> bytes;
  std::map<std::size_t, ssh::HostResult> results;
  std::map<std::size_t, Pushed> pushed;
};

/// Hosts that answer what a test tells them to, and remember the steps they were asked for.
struct FakeRemote : ssh::Remote {
  explicit FakeRemote(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      names.push_back(ssh::parse_host("host" + std::to_string(i)));
  }

  const std::vector<ssh::Host>& hosts() const override { return names; }
  bool interrupted() const override { return false; }
  std::vector<ssh::HostResult> run(std::vector<ssh::Task> tasks, ssh::Listener& listener,
                                   const ssh::RunOptions&) override {
    std::vector<ssh::HostResult> results;
    for (const ssh::Task& task : tasks) {
      ssh::HostResult result = tell(task, listener);
      for (auto next = listener.next_task(task.host, result); next;
           next = listener.next_task(task.host, result)) {
        const auto before = result.elapsed;
        result = tell(next->task.value(), listener);
        result.elapsed += before;
      }
      listener.on_result(task.host, result);
      results.push_back(std::move(result));
    }
    return results;
  }

  ssh::HostResult tell(const ssh::Task& task, ssh::Listener& listener) {
    ssh::HostResult result = answer(task);
    result.host = names[task.host];
    result.elapsed = std::chrono::milliseconds(10);
    if (task.options && task.options->keep_output == ssh::KeepOutput::no) {
      listener.on_output(task.host, ssh::Stream::err, result.err);
      listener.on_output(task.host, ssh::Stream::out, result.out);
      result.out.clear();
      result.err.clear();
    }
    return result;
  }

  ssh::HostResult answer(const ssh::Task& task) {
    const bool is_rsync = std::holds_alternative<ssh::LocalProgram>(task.step);
    std::string step = "rsync";
    if (!is_rsync) {
      const std::string& script = std::get<ssh::Command>(task.step).input;
      step = script.find("root_inode=") != script.npos        ? "ask"
             : script.find("incoming_digest=") != script.npos ? "unpack"
             : script.find("in_the_way=()") != script.npos    ? "prepare"
                                                              : "prune";
      if (step == "unpack") packages.push_back(std::get<ssh::Command>(task.step).input_from);
    }
    steps[task.host].push_back(step);
    std::vector<ssh::HostResult>& prepared = answers[task.host][step];
    if (!prepared.empty()) {
      const ssh::HostResult first = prepared.front();
      if (prepared.size() > 1) prepared.erase(prepared.begin());
      return first;
    }
    ssh::HostResult result;
    result.exit_code = 0;
    if (step == "ask") result.out = "dtool-answer state=unknown\n";
    if (step == "unpack") result.out = "dtool-answer unpacked=yes\ndtool-answer removed=1\n";
    if (step == "prepare") result.out = "dtool-answer lock=/lock\ndtool-answer prepared=yes\n";
    if (step == "rsync") result.out = "\nNumber of regular files transferred: 3\n";
    if (step == "prune") result.out = "dtool-answer removed=2\n";
    return result;
  }

  std::vector<ssh::Host> names;
  /// By host and step, one after the other; the last one again and again.
  std::map<std::size_t, std::map<std::string, std::vector<ssh::HostResult>>> answers;
  std::vector<std::shared_ptr<const ssh::ProgramOutput>> packages;  ///< as they were sent
  std::map<std::size_t, Names> steps;
};

Tree small_tree() {
  Tree tree;
  tree.root = "/usr";
  tree.files = {"bin"};
  return tree;
}

ssh::HostResult ended(int exit_code, const std::string& out, const std::string& err = "") {
  ssh::HostResult result;
  result.exit_code = exit_code;
  result.out = out;
  result.err = err;
  return result;
}

/// A home of its own, where listings are kept.
class PushTest : public ::testing::Test {
 protected:
  PushTest() { ::setenv("HOME", home_.path().c_str(), 1); }
  tests::TemporaryFolder home_;
};

constexpr const char* kEmpty =
    "dtool-answer state=empty\ndtool-answer has=tar\ndtool-answer has=find\ndtool-answer "
    "has=gzip\n";

TEST_F(PushTest, AHostIsPreparedSentToAndPruned) {
  FakeRemote remote(1);
  Told told;
  const auto results = push(remote, small_tree(), {{0, "~/code"}}, told, {});
  EXPECT_EQ(remote.steps[0], (Names{"ask", "prepare", "rsync", "prune"}));
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_EQ(results[0].out, "");
  EXPECT_EQ(results[0].elapsed, std::chrono::milliseconds(40));
  EXPECT_EQ(told.pushed[0].sent.files, 3U);
  EXPECT_EQ(told.pushed[0].removed, 2U);
}

TEST_F(PushTest, AHostThatHasTheTreeIsAskedAndNoMore) {
  FakeRemote remote(2);
  Told told;
  remote.answers[0]["ask"] = {ended(0, "hello from .bashrc\ndtool-answer state=whole\n")};
  remote.answers[1]["ask"] = {ended(0, "dtool-answer state=same_folder\n")};
  const auto results = push(remote, small_tree(), {{0, "~/code"}, {1, "~/code"}}, told, {});
  EXPECT_EQ(remote.steps[0], (Names{"ask"}));
  EXPECT_EQ(remote.steps[1], (Names{"ask"}));
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_FALSE(told.pushed[0].is_the_tree);
  EXPECT_TRUE(told.pushed[1].is_the_tree);
}

TEST_F(PushTest, HostsThatLackTheSameShareOnePackage) {
  FakeRemote remote(3);
  Told told;
  for (const std::size_t host : {0, 2}) remote.answers[host]["ask"] = {ended(0, kEmpty)};
  push(remote, small_tree(), {{0, "~/c"}, {1, "~/c"}, {2, "~/c"}}, told, {});
  EXPECT_EQ(remote.steps[0], (Names{"ask", "unpack"}));
  EXPECT_EQ(remote.steps[1], (Names{"ask", "prepare", "rsync", "prune"}));
  ASSERT_EQ(remote.packages.size(), 2U);
  EXPECT_EQ(remote.packages[0], remote.packages[1]);
  EXPECT_EQ(told.pushed[2].removed, 1U);
  EXPECT_EQ(told.pushed[2].sent.files, 1U);
}

TEST_F(PushTest, WhereAPackageDoesNotDoRsyncDoes) {
  FakeRemote remote(3);
  Told told;
  for (const std::size_t host : {0, 1, 2}) remote.answers[host]["ask"] = {ended(0, kEmpty)};
  remote.answers[0]["unpack"] = {ended(0, "dtool-answer broken=no tar\n")};
  ssh::HostResult not_packed;
  not_packed.failure = ssh::Failure::local_program;
  remote.answers[1]["unpack"] = {not_packed};
  remote.answers[2]["unpack"] = {
      ended(1, "dtool-answer error=another dtool is sending another tree there\n")};
  const auto results = push(remote, small_tree(), {{0, "~/c"}, {1, "~/c"}, {2, "~/c"}}, told, {});
  const Names all = {"ask", "unpack", "prepare", "rsync", "prune"};
  EXPECT_EQ(remote.steps[0], all);
  EXPECT_EQ(remote.steps[1], all);
  EXPECT_TRUE(results.at(0).ok() && results.at(1).ok());
  EXPECT_EQ(remote.steps[2], (Names{"ask", "unpack"})) << "the newer tree has its turn";
  EXPECT_FALSE(results.at(2).ok());
}

TEST_F(PushTest, ATreeThatIsNotRememberedHereIsComparedByRsync) {
  FakeRemote remote(1);
  Told told;
  remote.answers[0]["ask"] = {ended(
      0, std::string(kEmpty).replace(13, 11, "state=known") + "dtool-answer basis=../secret\n")};
  push(remote, small_tree(), {{0, "~/c"}}, told, {});
  EXPECT_EQ(remote.steps[0], (Names{"ask", "prepare", "rsync", "prune"}));
}

TEST_F(PushTest, AHostThatSharesItsFolderWaitsAndIsAskedAgain) {
  FakeRemote remote(2);
  Told told;
  remote.answers[1]["ask"] = {ended(0, "dtool-answer state=shared\n"),
                              ended(0, "dtool-answer state=whole\n")};
  const auto results = push(remote, small_tree(), {{0, "/c"}, {1, "/c"}}, told, {});
  EXPECT_EQ(remote.steps[1], (Names{"ask", "ask"}));
  EXPECT_TRUE(results.at(1).ok());
  EXPECT_EQ(told.order, (std::vector<std::size_t>{0, 1})) << "each is told once";
}

TEST_F(PushTest, AHostThatSaysForEverThatItSharesItsFolderFails) {
  FakeRemote remote(2);
  Told told;
  remote.answers[1]["ask"] = {ended(0, "dtool-answer state=shared\n")};
  const auto results = push(remote, small_tree(), {{0, "/c"}, {1, "/c"}}, told, {});
  EXPECT_EQ(remote.steps[1], (Names{"ask", "ask"}));
  EXPECT_EQ(results.at(1).exit_code, 1);
  EXPECT_EQ(told.order, (std::vector<std::size_t>{0, 1}));
}

TEST_F(PushTest, AFailedHostIsLeftAloneAndTheOthersGoOn) {
  FakeRemote remote(3);
  Told told;
  remote.answers[0]["rsync"] = {
      ended(11, "", "rsync: [receiver] write failed on \"a\": No space left on device (28)\n")};
  remote.answers[1]["prepare"] = {
      ended(1, "dtool-answer error=rsync is not installed\ndtool-answer hint=get it\n")};
  const auto results = push(remote, small_tree(), {{2, "/c"}, {0, "~/c"}, {1, "~/c"}}, told, {});
  EXPECT_EQ(remote.steps[0], (Names{"ask", "prepare", "rsync"}));
  EXPECT_EQ(remote.steps[1], (Names{"ask", "prepare"}));
  EXPECT_EQ(remote.steps[2], (Names{"ask", "prepare", "rsync", "prune"}));
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_EQ(results.at(1).exit_code, 11);
  EXPECT_NE(results[1].error.find("No space left"), std::string::npos) << results[1].error;
  EXPECT_EQ(results[1].hint, "free some space there");
  EXPECT_EQ(results.at(2).error, "rsync is not installed");
  EXPECT_EQ(results[2].hint, "get it");
  EXPECT_EQ(told.order, (std::vector<std::size_t>{2, 0, 1})) << "no host waits for another";
}

TEST_F(PushTest, AScriptThatSaysNothingIsAFailure) {
  FakeRemote remote(1);
  Told told;
  for (const std::string step : {"ask", "prepare", "prune"}) {
    remote.answers[0] = {{step, {ended(0, "nothing of ours\n")}}};
    EXPECT_FALSE(push(remote, small_tree(), {{0, "~/c"}}, told, {}).at(0).ok()) << step;
  }
  remote.answers[0] = {{"ask", {ended(127, "")}}};
  const auto results = push(remote, small_tree(), {{0, "~/c"}}, told, {});
  EXPECT_EQ(results.at(0).error, "bash is not installed");
}

TEST_F(PushTest, AFolderMustStartAtTheRootOrAtHome) {
  FakeRemote remote(2);
  Told told;
  for (const char* folder : {"", "code", "~other/code", "../code"}) {
    EXPECT_THROW(push(remote, small_tree(), {{0, folder}}, told, {}), std::invalid_argument)
        << folder;
  }
  EXPECT_THROW(push(remote, small_tree(), {{0, "/a"}, {0, "/b"}}, told, {}), std::invalid_argument);
  EXPECT_TRUE(remote.steps.empty());
}

/// This machine under another name, so that it is sent what a host over the network is.
struct Elsewhere : ssh::Remote {
  const std::vector<ssh::Host>& hosts() const override { return names; }
  bool interrupted() const override { return real->interrupted(); }
  std::vector<ssh::HostResult> run(std::vector<ssh::Task> tasks, ssh::Listener& listener,
                                   const ssh::RunOptions& options) override {
    return real->run(std::move(tasks), listener, options);
  }

  std::vector<ssh::Host> names = {ssh::parse_host("elsewhere")};
  std::unique_ptr<ssh::Remote> real = ssh::make_fleet({ssh::parse_host("local")}, {});
};

enum class Way { rsync, package };

/// A real push to `local`, with this folder's `home` as HOME.
class LocalPushTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("rsync --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no rsync";
    fs::create_directory(scratch_.path() / "home");
    ::setenv("HOME", (scratch_.path() / "home").c_str(), 1);
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  ssh::HostResult push_to(const std::string& folder, const std::string& tree = "tree") {
    Elsewhere elsewhere;
    ssh::Remote& remote = way_ == Way::rsync ? *elsewhere.real : elsewhere;
    told_ = {};
    return push(remote, read_tree(scratch_.path() / tree, {}), {{0, folder}}, told_, {}).at(0);
  }
  const Pushed& pushed() { return told_.pushed[0]; }

  /// Every file and link below `home/NAME`, and every folder with nothing in it.
  Names there(const std::string& name = "code") const {
    Names names;
    const fs::path root = scratch_.path() / "home" / name;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const bool is_folder = entry.is_directory() && !entry.is_symlink();
      if (is_folder && !fs::is_empty(entry)) continue;
      names.push_back(entry.path().lexically_relative(root).native() + (is_folder ? "/" : ""));
    }
    std::ranges::sort(names);
    return names;
  }

  /// Puts a script of this name before all others in PATH.
  void put_in_path(const std::string& name, const std::string& script) {
    scratch_.write("bin/" + name, "#!/bin/bash\n" + script);
    fs::permissions(scratch_.path() / "bin" / name, fs::perms::owner_all);
    ::setenv("PATH", ((scratch_.path() / "bin").native() + ":" + path_).c_str(), 1);
  }

  fs::path manifest() const {
    for (const auto& entry : fs::directory_iterator(scratch_.path() / "home/.dtool/trees")) {
      if (entry.path().extension() == ".manifest") return entry.path();
    }
    throw std::runtime_error("no manifest");
  }

  tests::TemporaryFolder scratch_;
  Told told_;
  Way way_ = Way::rsync;
  std::string path_ = std::getenv("PATH");
};

/// What holds whether rsync does it or a package.
class EveryWayTest : public LocalPushTest, public ::testing::WithParamInterface<Way> {
 protected:
  EveryWayTest() { way_ = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Push, EveryWayTest, ::testing::Values(Way::rsync, Way::package),
                         [](const auto& way) {
                           return way.param == Way::rsync ? "ByRsync" : "ByPackage";
                         });

#define EXPECT_OK(result)                                                          \
  do {                                                                             \
    const ssh::HostResult each = result;                                           \
    EXPECT_TRUE(each.ok()) << each.error << "\n" << each.hint << "\n" << each.err; \
  } while (false)

TEST_P(EveryWayTest, FilesOfEveryNameArriveUnchanged) {
  Names names = {"#hash",
                 "$HOME/$(id)",
                 "'quote'",
                 "-rf",
                 ";semi",
                 "a b/c d",
                 "a\\b",
                 "new\nline",
                 "*",
                 "tab\t",
                 "\"double\"",
                 "umlaut-\xc3\xa4",
                 "~",
                 "latin-\xe4",
                 "[x]",
                 "!bang",
                 "a]b/@",
                 "{remote_shell}",
                 " ",
                 "trailing ",
                 "%s\\n",
                 "-",
                 "dtool-answer error=x"};
  for (const std::string& name : names) scratch_.write("tree/" + name, "content of " + name);
  const std::string folder = "~/it's $HOME; \"a\\b\"\n~ -x";
  EXPECT_OK(push_to(folder));
  std::ranges::sort(names);
  EXPECT_EQ(there(folder.substr(2)), names);
  for (const std::string& name : names) {
    EXPECT_EQ(scratch_.read("home/" + folder.substr(2) + "/" + name), "content of " + name);
  }
  EXPECT_EQ(pushed().sent.files, names.size());
  EXPECT_GT(told_.bytes[0], 0U);
  for (const std::string& name : names) fs::remove(scratch_.path() / "tree" / name);
  scratch_.write("tree/one");
  EXPECT_OK(push_to(folder));
  EXPECT_EQ(there(folder.substr(2)), (Names{"one"})) << "and go again";
}

TEST_P(EveryWayTest, LinksPermissionsAndTimesAreKept) {
  scratch_.write("tree/run.sh");
  scratch_.write("tree/plain");
  fs::permissions(scratch_.path() / "tree/run.sh", static_cast<fs::perms>(0750));
  fs::permissions(scratch_.path() / "tree/plain", static_cast<fs::perms>(0644));
  fs::create_symlink("plain", scratch_.path() / "tree/link");
  fs::create_symlink("/nowhere", scratch_.path() / "tree/dangling");
  const auto time = fs::last_write_time(scratch_.path() / "tree/plain") - std::chrono::hours(48);
  fs::last_write_time(scratch_.path() / "tree/plain", time);
  EXPECT_OK(push_to("~/code"));
  const fs::path code = scratch_.path() / "home/code";
  EXPECT_EQ(fs::status(code / "run.sh").permissions(), static_cast<fs::perms>(0750));
  EXPECT_EQ(fs::status(code / "plain").permissions(), static_cast<fs::perms>(0644));
  EXPECT_EQ(fs::read_symlink(code / "link"), "plain");
  EXPECT_EQ(fs::read_symlink(code / "dangling"), "/nowhere");
  EXPECT_EQ(fs::last_write_time(code / "plain"), time);
}

TEST_P(EveryWayTest, TheFoldersOwnPermissionsStay) {
  scratch_.write("tree/a");
  fs::permissions(scratch_.path() / "tree", static_cast<fs::perms>(0777));
  fs::permissions(scratch_.path() / "home", static_cast<fs::perms>(0700));
  EXPECT_OK(push_to("~"));
  EXPECT_EQ(fs::status(scratch_.path() / "home").permissions(), static_cast<fs::perms>(0700))
      << "sshd refuses keys in a home that others can write";
}

TEST_P(EveryWayTest, ASecondPushSendsNothing) {
  scratch_.write("tree/a");
  scratch_.write("tree/b/c");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 2U);
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 0U);
  EXPECT_EQ(pushed().removed, 0U);
}

TEST_P(EveryWayTest, AnEditOfTheSameSizeWithinASecondIsSent) {
  scratch_.write("tree/a", "lr = 1");
  EXPECT_OK(push_to("~/code"));
  const auto time = fs::last_write_time(scratch_.path() / "tree/a");
  scratch_.write("tree/a", "lr = 2");
  fs::last_write_time(scratch_.path() / "tree/a", time + std::chrono::nanoseconds(1));
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(scratch_.read("home/code/a"), "lr = 2");
}

TEST_P(EveryWayTest, WhatSomebodyChangedThereIsMended) {
  for (const char* name : {"tree/edited", "tree/deleted", "tree/linked", "tree/sub/moved"})
    scratch_.write(name, "sent");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("home/code/edited", "by hand");
  fs::remove(scratch_.path() / "home/code/deleted");
  fs::remove(scratch_.path() / "home/code/linked");
  fs::create_symlink("edited", scratch_.path() / "home/code/linked");
  fs::rename(scratch_.path() / "home/code/sub", scratch_.path() / "home/code/elsewhere");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 4U);
  for (const char* name : {"edited", "deleted", "linked", "sub/moved"})
    EXPECT_EQ(scratch_.read(std::string("home/code/") + name), "sent") << name;
  EXPECT_FALSE(fs::is_symlink(scratch_.path() / "home/code/linked"));
}

TEST_P(EveryWayTest, AFoldersModeIsKeptAndChangesAlone) {
  scratch_.write("tree/sub/a");
  fs::permissions(scratch_.path() / "tree/sub", static_cast<fs::perms>(0750));
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(fs::status(scratch_.path() / "home/code/sub").permissions(),
            static_cast<fs::perms>(0750));
  fs::permissions(scratch_.path() / "tree/sub", static_cast<fs::perms>(0711));
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(fs::status(scratch_.path() / "home/code/sub").permissions(),
            static_cast<fs::perms>(0711));
}

TEST_P(EveryWayTest, NothingOfThePushStays) {
  scratch_.write("tree/a");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("tree/b");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"a", "b"}));
  for (const auto& entry : fs::directory_iterator(scratch_.path() / "home/.dtool/trees"))
    EXPECT_FALSE(entry.is_directory()) << entry;
}

TEST_F(LocalPushTest, APackageThatBreaksOffLeavesTheOldTreeAndIsNoFailure) {
  way_ = Way::package;
  scratch_.write("tree/a", "old");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("tree/a", "newer");
  // It breaks off in the middle; rsync, which does it then, sees what is there.
  put_in_path("tar",
              "[ \"$1\" != --extract ] || { head -c 100 > /dev/null; exit 2; }\nexec /usr/bin/tar "
              "\"$@\"\n");
  put_in_path(
      "rsync",
      "[ \"$1\" = --server ] || cp \"$HOME/code/a\" \"$HOME/seen\"\nexec /usr/bin/rsync \"$@\"\n");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(scratch_.read("home/seen"), "old");
  EXPECT_EQ(scratch_.read("home/code/a"), "newer");
  EXPECT_EQ(there(), (Names{"a"}));
}

TEST_F(LocalPushTest, APackageNeedsNoRsync) {
  way_ = Way::package;
  put_in_path("rsync", "exit 1\n");
  scratch_.write("tree/a");
  scratch_.write("tree/b");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 2U);
  scratch_.write("tree/a", "changed");
  fs::remove(scratch_.path() / "tree/b");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 1U) << "only what differs";
  EXPECT_EQ(pushed().removed, 1U);
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 0U);
}

TEST_P(EveryWayTest, WhatTheTreeNoLongerHasGoesAndNothingElse) {
  scratch_.write("tree/a");
  scratch_.write("tree/old/deep/b");
  scratch_.write("tree/shared/c");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("home/code/checkpoint.pt");
  scratch_.write("home/code/shared/results");
  fs::create_directory(scratch_.path() / "home/code/empty");
  fs::remove_all(scratch_.path() / "tree/old");
  fs::remove_all(scratch_.path() / "tree/shared");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"a", "checkpoint.pt", "empty/", "shared/results"}));
  EXPECT_EQ(pushed().removed, 2U);
}

TEST_P(EveryWayTest, AFolderHasOneListUnderAllItsNames) {
  scratch_.write("tree/a");
  scratch_.write("tree/b");
  EXPECT_OK(push_to("~/code"));
  fs::remove(scratch_.path() / "tree/b");
  EXPECT_OK(push_to((scratch_.path() / "home/./code/").native()));
  EXPECT_EQ(there(), (Names{"a"}));
}

TEST_P(EveryWayTest, AFileAndAFolderChangePlaces) {
  scratch_.write("tree/x/y/file");
  scratch_.write("tree/z");
  EXPECT_OK(push_to("~/code"));
  fs::remove_all(scratch_.path() / "tree");
  scratch_.write("tree/x", "now a file");
  scratch_.write("tree/z/deep/file");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"x", "z/deep/file"}));
  fs::remove_all(scratch_.path() / "tree/z");
  fs::create_directory_symlink("/usr", scratch_.path() / "tree/z");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"x", "z"}));
}

TEST_P(EveryWayTest, AForeignFileInAFolderThatIsToBecomeAFileStays) {
  scratch_.write("tree/x/sent");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("home/code/x/foreign");
  fs::remove_all(scratch_.path() / "tree/x");
  scratch_.write("tree/x", "now a file");
  const auto result = push_to("~/code");
  EXPECT_EQ(result.exit_code, 23);
  EXPECT_NE(result.error.find("could not make way"), std::string::npos) << result.error;
  EXPECT_NE(result.hint.find("did not send"), std::string::npos) << result.hint;
  EXPECT_EQ(there(), (Names{"x/foreign"}));
}

TEST_P(EveryWayTest, NothingIsDeletedThroughALink) {
  scratch_.write("tree/a");
  scratch_.write("tree/data/x");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("outside/x", "precious");
  fs::remove_all(scratch_.path() / "home/code/data");
  fs::create_directory_symlink(scratch_.path() / "outside", scratch_.path() / "home/code/data");
  fs::remove_all(scratch_.path() / "tree/data");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(scratch_.read("outside/x"), "precious");
}

TEST_P(EveryWayTest, AListThatNamesFilesOutsideDeletesNone) {
  scratch_.write("tree/a");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("precious");
  scratch_.write("home/precious");
  const std::string absolute = (scratch_.path() / "precious").native();
  std::string list;
  for (const std::string& name :
       {std::string("../precious"), absolute, std::string("b/../../precious"), std::string(),
        std::string("."), std::string(".."), std::string("a/"), std::string("-rf")}) {
    list += name + '\0';
  }
  scratch_.write(manifest(), list + "unsorted" + '\0' + "a");
  scratch_.write("tree/b/c");
  EXPECT_OK(push_to("~/code"));
  EXPECT_TRUE(fs::exists(scratch_.path() / "precious"));
  EXPECT_TRUE(fs::exists(scratch_.path() / "home/precious"));
  EXPECT_EQ(there(), (Names{"a", "b/c"}));
}

TEST_P(EveryWayTest, AFolderIsNeverSentOntoItself) {
  scratch_.write("home/code/a");
  scratch_.write("home/code/b");
  EXPECT_OK(push_to("~/code", "home/code"));
  EXPECT_TRUE(pushed().is_the_tree);
  fs::create_directory_symlink("code", scratch_.path() / "home/link");
  EXPECT_OK(push_to("~/link", "home/code"));
  EXPECT_TRUE(pushed().is_the_tree);
  EXPECT_FALSE(fs::exists(scratch_.path() / "home/.dtool"));
}

/// rsync's stream to the host breaks off after some bytes.
constexpr const char* kCutStream =
    "if [ \"$1\" = --server ]; then stdbuf -o0 head -c 300000 | exec /usr/bin/rsync \"$@\"; exit; "
    "fi\n"
    "exec /usr/bin/rsync \"$@\"\n";

TEST_F(LocalPushTest, AnInterruptedPushLeavesTheOldTreeAndTheNextOneMendsIt) {
  scratch_.write("tree/a", "old");
  scratch_.write("tree/gone", "old");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("tree/a", "newer");
  scratch_.write("tree/big", std::string(2'000'000, 'x'));
  fs::remove(scratch_.path() / "tree/gone");
  put_in_path("rsync", kCutStream);
  const auto result = push_to("~/code");
  EXPECT_GT(result.exit_code, 0);
  EXPECT_EQ(result.hint, "the transfer broke off; the next push takes it up again") << result.err;
  EXPECT_EQ(scratch_.read("home/code/.~tmp~/a"), "newer") << "it had come, and big had not";
  EXPECT_EQ(scratch_.read("home/code/a"), "old");
  EXPECT_EQ(scratch_.read("home/code/gone"), "old") << "a host that failed is not pruned";
  EXPECT_FALSE(fs::exists(scratch_.path() / "home/code/big"));

  ::setenv("PATH", path_.c_str(), 1);
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"a", "big"}));
  EXPECT_EQ(scratch_.read("home/code/a"), "newer");
}

enum class When { before, after };

/// An rsync that lets another dtool begin to send before or after it has been the host's.
std::string overtaken(When when) {
  const std::string begin =
      "for lock in \"$HOME\"/.dtool/trees/*.lock; do echo another > \"$lock\"; done\n";
  const std::string is_ours = "if [ \"$1\" != --server ]; then ";
  const std::string exec_real = "exec /usr/bin/rsync \"$@\"\n";
  return when == When::before ? is_ours + begin + "fi\n" + exec_real
                              : is_ours + exec_real + "fi\n/usr/bin/rsync \"$@\"\ncode=$?\n" +
                                    begin + "exit $code\n";
}

TEST_F(LocalPushTest, WhatAnotherDtoolBeganToSendMeanwhileIsNotMixedWithThis) {
  scratch_.write("tree/a", "old");
  scratch_.write("tree/gone", "old");
  EXPECT_OK(push_to("~/code"));
  scratch_.write("tree/a", "newer");
  fs::remove(scratch_.path() / "tree/gone");
  put_in_path("rsync", overtaken(When::before));
  const auto result = push_to("~/code");
  EXPECT_NE(result.error.find("another dtool is sending another tree there"), std::string::npos)
      << result.error;
  EXPECT_NE(result.hint.find("--code_path"), std::string::npos) << result.hint;
  EXPECT_EQ(scratch_.read("home/code/a"), "old");

  put_in_path("rsync", overtaken(When::after));
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"a", "gone"})) << "the other one prunes";
  ::setenv("PATH", path_.c_str(), 1);
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"a"}));
}

TEST_F(LocalPushTest, FilesOfAnInterruptedPushAreKnownToBeDtools) {
  scratch_.write("tree/a");
  scratch_.write("tree/b");
  scratch_.write("home/code/b", "foreign, and of another size");
  put_in_path("rsync", "[ \"$1\" != --server ] || exit 14\nexec /usr/bin/rsync \"$@\"\n");
  EXPECT_FALSE(push_to("~/code").ok());
  scratch_.write("home/code/a", "as if rsync had come so far");
  ::setenv("PATH", path_.c_str(), 1);
  fs::remove(scratch_.path() / "tree/a");
  fs::remove(scratch_.path() / "tree/b");
  scratch_.write("tree/c");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(there(), (Names{"b", "c"})) << "b was there before and never sent";
}

TEST_F(LocalPushTest, WithoutRsyncThereThatIsWhatItSays) {
  scratch_.write("tree/a");
  for (const char* name :
       {"bash", "sh", "cat", "env", "mkdir", "stat", "sha256sum", "flock", "head"}) {
    put_in_path(name, std::string("exec /bin/") + name + " \"$@\"\n");
  }
  ::setenv("PATH", (scratch_.path() / "bin").c_str(), 1);
  const auto result = push_to("~/code");
  EXPECT_EQ(result.error, "rsync is not installed");
  EXPECT_EQ(result.hint, "apt-get install rsync");
  EXPECT_FALSE(result.ok());
}

TEST_P(EveryWayTest, AFolderThatCannotBeMadeIsNamed) {
  scratch_.write("tree/a");
  scratch_.write("home/file");
  const auto result = push_to("~/file/code");
  EXPECT_NE(result.error.find("cannot make the folder"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("/home/file/code"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("Not a directory"), std::string::npos) << result.error;
}

}  // namespace
}  // namespace dtool::tree_sync

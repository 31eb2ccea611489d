#include "sync/push.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
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
        result = tell(next->task, listener);
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
      step = script.find("root_inode") != script.npos ? "prepare" : "prune";
    }
    steps[task.host].push_back(step);
    if (answers[task.host].contains(step)) return answers[task.host][step];
    ssh::HostResult result;
    result.exit_code = 0;
    if (step == "prepare") result.out = "dtool-answer prune=yes\n";
    if (step == "rsync") result.out = "\nNumber of regular files transferred: 3\n";
    if (step == "prune") result.out = "dtool-answer removed=2\n";
    return result;
  }

  std::vector<ssh::Host> names;
  std::map<std::size_t, std::map<std::string, ssh::HostResult>> answers;
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

TEST(Push, AHostIsPreparedSentToAndPruned) {
  FakeRemote remote(1);
  Told told;
  const auto results = push(remote, small_tree(), {{0, "~/code"}}, told, {});
  EXPECT_EQ(remote.steps[0], (Names{"prepare", "rsync", "prune"}));
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_EQ(results[0].out, "");
  EXPECT_EQ(results[0].elapsed, std::chrono::milliseconds(30));
  EXPECT_EQ(told.pushed[0].sent.files, 3U);
  EXPECT_EQ(told.pushed[0].removed, 2U);
}

TEST(Push, WhereNothingWentNothingIsPruned) {
  FakeRemote remote(1);
  Told told;
  remote.answers[0]["prepare"] = ended(0, "hello from .bashrc\ndtool-answer prune=no\n");
  push(remote, small_tree(), {{0, "~/code"}}, told, {});
  EXPECT_EQ(remote.steps[0], (Names{"prepare", "rsync"}));
}

TEST(Push, AFailedHostIsLeftAloneAndTheOthersGoOn) {
  FakeRemote remote(3);
  Told told;
  remote.answers[0]["rsync"] =
      ended(11, "", "rsync: [receiver] write failed on \"a\": No space left on device (28)\n");
  remote.answers[1]["prepare"] =
      ended(1, "dtool-answer error=rsync is not installed\ndtool-answer hint=get it\n");
  const auto results = push(remote, small_tree(), {{2, "/c"}, {0, "~/c"}, {1, "~/c"}}, told, {});
  EXPECT_EQ(remote.steps[0], (Names{"prepare", "rsync"}));
  EXPECT_EQ(remote.steps[1], (Names{"prepare"}));
  EXPECT_EQ(remote.steps[2], (Names{"prepare", "rsync", "prune"}));
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_EQ(results.at(1).exit_code, 11);
  EXPECT_NE(results[1].error.find("No space left"), std::string::npos) << results[1].error;
  EXPECT_EQ(results[1].hint, "free some space there");
  EXPECT_EQ(results.at(2).error, "rsync is not installed");
  EXPECT_EQ(results[2].hint, "get it");
  EXPECT_EQ(told.order, (std::vector<std::size_t>{2, 0, 1})) << "no host waits for another";
}

TEST(Push, AScriptThatSaysNothingIsAFailure) {
  FakeRemote remote(1);
  Told told;
  remote.answers[0]["prepare"] = ended(0, "nothing of ours\n");
  EXPECT_FALSE(push(remote, small_tree(), {{0, "~/c"}}, told, {}).at(0).ok());
  remote.answers[0]["prepare"] = ended(127, "");
  const auto results = push(remote, small_tree(), {{0, "~/c"}}, told, {});
  EXPECT_EQ(results.at(0).error, "bash is not installed");
}

TEST(Push, AFolderMustStartAtTheRootOrAtHome) {
  FakeRemote remote(2);
  Told told;
  for (const char* folder : {"", "code", "~other/code", "../code"}) {
    EXPECT_THROW(push(remote, small_tree(), {{0, folder}}, told, {}), std::invalid_argument)
        << folder;
  }
  EXPECT_THROW(push(remote, small_tree(), {{0, "/a"}, {0, "/b"}}, told, {}), std::invalid_argument);
  EXPECT_TRUE(remote.steps.empty());
}

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
    auto remote = ssh::make_fleet({ssh::parse_host("local")}, {});
    told_ = {};
    return push(*remote, read_tree(scratch_.path() / tree, {}), {{0, folder}}, told_, {}).at(0);
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
  std::string path_ = std::getenv("PATH");
};

#define EXPECT_OK(result)                                                          \
  do {                                                                             \
    const ssh::HostResult each = result;                                           \
    EXPECT_TRUE(each.ok()) << each.error << "\n" << each.hint << "\n" << each.err; \
  } while (false)

TEST_F(LocalPushTest, FilesOfEveryNameArriveUnchanged) {
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

TEST_F(LocalPushTest, LinksPermissionsAndTimesAreKept) {
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

TEST_F(LocalPushTest, TheFoldersOwnPermissionsStay) {
  scratch_.write("tree/a");
  fs::permissions(scratch_.path() / "tree", static_cast<fs::perms>(0777));
  fs::permissions(scratch_.path() / "home", static_cast<fs::perms>(0700));
  EXPECT_OK(push_to("~"));
  EXPECT_EQ(fs::status(scratch_.path() / "home").permissions(), static_cast<fs::perms>(0700))
      << "sshd refuses keys in a home that others can write";
}

TEST_F(LocalPushTest, ASecondPushSendsNothing) {
  scratch_.write("tree/a");
  scratch_.write("tree/b/c");
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 2U);
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(pushed().sent.files, 0U);
  EXPECT_EQ(pushed().removed, 0U);
}

TEST_F(LocalPushTest, AnEditOfTheSameSizeWithinASecondIsSent) {
  scratch_.write("tree/a", "lr = 1");
  EXPECT_OK(push_to("~/code"));
  const auto time = fs::last_write_time(scratch_.path() / "tree/a");
  scratch_.write("tree/a", "lr = 2");
  fs::last_write_time(scratch_.path() / "tree/a", time + std::chrono::nanoseconds(1));
  EXPECT_OK(push_to("~/code"));
  EXPECT_EQ(scratch_.read("home/code/a"), "lr = 2");
}

TEST_F(LocalPushTest, WhatTheTreeNoLongerHasGoesAndNothingElse) {
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

TEST_F(LocalPushTest, AFolderHasOneListUnderAllItsNames) {
  scratch_.write("tree/a");
  scratch_.write("tree/b");
  EXPECT_OK(push_to("~/code"));
  fs::remove(scratch_.path() / "tree/b");
  EXPECT_OK(push_to((scratch_.path() / "home/./code/").native()));
  EXPECT_EQ(there(), (Names{"a"}));
}

TEST_F(LocalPushTest, AFileAndAFolderChangePlaces) {
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

TEST_F(LocalPushTest, AForeignFileInAFolderThatIsToBecomeAFileStays) {
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

TEST_F(LocalPushTest, NothingIsDeletedThroughALink) {
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

TEST_F(LocalPushTest, AListThatNamesFilesOutsideDeletesNone) {
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

TEST_F(LocalPushTest, AFolderIsNeverSentOntoItself) {
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
  for (const char* name : {"bash", "sh", "cat", "env", "mkdir", "stat"}) {
    put_in_path(name, std::string("exec /bin/") + name + " \"$@\"\n");
  }
  ::setenv("PATH", (scratch_.path() / "bin").c_str(), 1);
  const auto result = push_to("~/code");
  EXPECT_EQ(result.error, "rsync is not installed");
  EXPECT_EQ(result.hint, "apt-get install rsync");
  EXPECT_FALSE(result.ok());
}

TEST_F(LocalPushTest, AFolderThatCannotBeMadeIsNamed) {
  scratch_.write("tree/a");
  scratch_.write("home/file");
  const auto result = push_to("~/file/code");
  EXPECT_NE(result.error.find("cannot make the folder"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("/home/file/code"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("Not a directory"), std::string::npos) << result.error;
}

}  // namespace
}  // namespace dtool::tree_sync

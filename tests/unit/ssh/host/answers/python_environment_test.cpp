// SPDX-License-Identifier: MIT
// What a host tells of its python3, and how an environment is built, held against its list and
// kept. The python3 is a script that notes what it is asked.
#include "ssh/host/answers/python_environment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/protocol.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

class Python : public testing::Test {
 protected:
  ~Python() override { ::setenv("PATH", path_.c_str(), 1); }

  PythonReply told(const std::string& script) {
    const std::string file = folder_.write("python3", "#!/bin/sh\n" + script);
    ::chmod(file.c_str(), 0755);
    ::setenv("PATH", folder_.path().c_str(), 1);
    return look_at_python();
  }

  tests::TemporaryFolder folder_;
  std::string path_ = std::getenv("PATH");
};

TEST_F(Python, ThatDoesNotStartIsToldWithItsWords) {
  const PythonReply reply = told("echo 'libpython3.12.so.1.0: cannot open' >&2; exit 127");
  EXPECT_EQ(reply.version, "");
  EXPECT_EQ(reply.fault, "libpython3.12.so.1.0: cannot open");
}

TEST_F(Python, ThatIsTooOldIsAsNone) {
  const PythonReply reply = told("echo AssertionError >&2; exit 1");
  EXPECT_EQ(reply.version, "");
  EXPECT_EQ(reply.fault, "");
}

TEST_F(Python, FailsForTheLastReasonThatItGives) {
  EXPECT_EQ(told("printf 'first\\nsick\\n\\nWARNING: old\\n' >&2; exit 1").fault, "sick");
  EXPECT_EQ(told("exit 3").fault, "exit code 3");
}

TEST_F(Python, TellsWhatPackagesAreChosenFor) {
  const PythonReply reply = told("echo 3.11.2 x86_64 5.10 12040 glibc 2.36");
  EXPECT_EQ(reply.version, "3.11.2");
  EXPECT_EQ(reply.processor, "x86_64");
  EXPECT_EQ(reply.kernel, "5.10");
  EXPECT_EQ(reply.cuda, 12040);
  EXPECT_EQ(reply.libc, "glibc 2.36");
  EXPECT_EQ(reply.fault, "");
  EXPECT_EQ(told("echo 3.11.2 x86_64 5.10 none").cuda, 0);
}

TEST_F(Python, ThatIsMissingIsNoFault) {
  ::setenv("PATH", folder_.path().c_str(), 1);
  EXPECT_EQ(look_at_python().version, "");
  EXPECT_EQ(ready_python({}).fault, "");
  const tests::TemporaryVariable home("HOME", folder_.path());
  const PythonReply reply = ready_python({std::string(64, 'a'), true});
  EXPECT_EQ(reply.fault, "") << "nothing is built";
  EXPECT_FALSE(reply.is_built);
}

TEST(MinorOfPython, IsTheNumberBehindThe3) {
  EXPECT_EQ(minor_of_python("3.11.2"), 11);
  EXPECT_EQ(minor_of_python("3.8"), 8);
  for (const char* other : {"", "3.", "3.x", "2.7.18", "13.11.2"})
    EXPECT_EQ(minor_of_python(other), 0) << other;
}

class BuiltEnvironment : public testing::Test {
 protected:
  BuiltEnvironment() {
    add_program("bin/python3", "exec \"$HOME/real\" \"$@\"\n");
    add_program("real", R"(echo "$@" >> "$HOME/asked"
case $2 in
  -c) [ "$1" = -I ] && echo 3.11.2 x86_64 5.10 0 glibc 2.36 || echo "six==1 $4" ; exit ;;
esac
case $3 in
  compileall) exit ;;
  venv) for folder; do :; done; mkdir -p "$folder/bin"; ln -s "$HOME/real" "$folder/bin/python3" ;;
  *) [ ! -e "$4" ] || echo old >> "$HOME/asked"; mkdir -p "$4" "$3/conda-meta"
     echo > "$3/conda-meta/history" ;;
esac
[ ! -e "$HOME/sick" ] || { echo oh >&2; exit 1; })");
  }

  void add_program(const std::string& name, const std::string& lines) const {
    std::filesystem::permissions(home_.write(name, "#!/bin/sh\n" + lines),
                                 std::filesystem::perms::owner_all);
  }

  std::string folder(const std::string& name = "") const {
    return (home_.path() / ".dtool/environments" / hash_ / name).string();
  }
  bool has(const std::string& name) const { return std::filesystem::exists(folder(name)); }
  void send(const std::string& name) const {
    home_.write(".dtool/environments/" + hash_ + "/packages/" + name);
  }
  void change() const { home_.write(".dtool/environments/" + hash_ + "/venv/added"); }

  PythonReply ready(bool is_conda = false) const { return ready_python({hash_, false, is_conda}); }
  PythonReply build(bool is_conda = false) const { return ready_python({hash_, true, is_conda}); }

  /// What python3 was asked since the last call, without what is asked about it.
  std::string asked() const {
    std::string text;
    std::istringstream lines(home_.read("asked"));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("-I ") && !line.starts_with("-I -c ")) text += line + "\n";
    std::filesystem::remove(home_.path() / "asked");
    return text;
  }

  /// The sentence and the hint of a refusal; empty where there was none.
  template <typename Call>
  std::string refusal(Call&& call) const {
    try {
      call();
    } catch (const Refused& refused) {
      return std::string(refused.what()) + "\n" + refused.hint();
    }
    return "";
  }

  const std::string hash_ = std::string(64, 'a');
  const tests::TemporaryFolder home_;
  const tests::TemporaryVariable variable_{"HOME", home_.path().string()};
  const tests::TemporaryVariable path_{
      "PATH", home_.path().string() + "/bin:" + std::string(std::getenv("PATH"))};
};

TEST_F(BuiltEnvironment, ThePackagesOfTheHostAreToldWhereNoneIsNamed) {
  EXPECT_EQ(ready_python({}).packages, "six==1 \n");
  EXPECT_EQ(ready_python({"", false, false, true}).packages, "six==1 all\n");
}

TEST_F(BuiltEnvironment, IsNamedByAHash) {
  for (const char* name : {"x", "../../code"})
    EXPECT_THROW(ready_python({name, true}), BadMessage) << name;
}

TEST_F(BuiltEnvironment, OfPythonIsMadeAroundItsPackagesWhereItStays) {
  send("lock.txt");
  send("lib/six.py");
  const PythonReply reply = build();
  EXPECT_TRUE(reply.is_built);
  EXPECT_EQ(reply.fault, "");
  EXPECT_EQ(asked(), "-I -m venv --without-pip " + folder("venv") + "\n-I -m compileall -qq -j 0 " +
                         folder("venv/lib") + "\n");
  EXPECT_TRUE(has("venv/lib/six.py"));
  EXPECT_FALSE(has("packages"));
  EXPECT_TRUE(ready().is_built);
  EXPECT_EQ(asked(), "");
}

TEST_F(BuiltEnvironment, MaySeeTheHostsOwnPackages) {
  send("lock.txt");
  EXPECT_TRUE(ready_python({hash_, true, false, true}).is_built);
  EXPECT_EQ(asked().find("-I -m venv --without-pip --system-site-packages " + folder("venv")), 0U);
}

TEST_F(BuiltEnvironment, ThatIsWholeIsNotBuiltAnewAndItsPackagesGo) {
  send("lock.txt");
  build();
  asked();
  send("lock.txt");
  EXPECT_TRUE(build().is_built);
  EXPECT_EQ(asked(), "");
  EXPECT_FALSE(has("packages"));
}

TEST_F(BuiltEnvironment, IsNotThereBeforeItIsBuilt) {
  const PythonReply reply = ready();
  EXPECT_EQ(reply.version, "3.11.2");
  EXPECT_FALSE(reply.is_built);
  EXPECT_EQ(reply.fault, "");
}

TEST_F(BuiltEnvironment, NeedsItsPackages) {
  send("lib/six.py");  // as they come: the list is sent last
  for (const bool is_conda : {false, true}) {
    const PythonReply reply = build(is_conda);
    EXPECT_FALSE(reply.is_built);
    EXPECT_EQ(reply.fault, "its packages are not there");
  }
  std::filesystem::remove_all(home_.path() / ".dtool");
  EXPECT_EQ(build().fault, "its packages are not there");
  EXPECT_EQ(asked(), "");
}

TEST_F(BuiltEnvironment, ThatCouldNotBeBuiltLeavesNothingThatLooksWhole) {
  send("lock.txt");
  build();
  change();
  send("lock.txt");
  home_.write("sick");
  const PythonReply reply = build();
  EXPECT_FALSE(reply.is_built);
  EXPECT_EQ(reply.fault, "python3 -m venv: oh");
  EXPECT_FALSE(has("venv"));
  EXPECT_FALSE(has("complete"));
}

TEST_F(BuiltEnvironment, OfCondaIsInstalledWithAScratchFolderOfItsOwn) {
  send(kCondaInstaller);
  home_.write(".dtool/environments/" + hash_ + "/scratch/old");
  const PythonReply reply = build(true);
  EXPECT_TRUE(reply.is_built) << "it may be without Python";
  EXPECT_EQ(reply.fault, "");
  EXPECT_EQ(asked(), "-I " + folder("packages/install_conda.py") + " " + folder("conda") + " " +
                         folder("scratch") + "\n");
  EXPECT_FALSE(has("scratch"));
  EXPECT_FALSE(has("packages"));
  EXPECT_TRUE(ready(true).is_built);
}

TEST_F(BuiltEnvironment, OfCondaThatCouldNotBeInstalledIsRemoved) {
  send(kCondaInstaller);
  home_.write("sick");
  EXPECT_EQ(build(true).fault, "py-rattler: oh");
  EXPECT_FALSE(has("conda"));
  EXPECT_FALSE(has("scratch"));
}

TEST_F(BuiltEnvironment, ThatWasChangedIsBuiltAnew) {
  send("lock.txt");
  build();
  change();
  const PythonReply reply = ready();
  EXPECT_FALSE(reply.is_built);
  EXPECT_EQ(reply.fault, "added was added");
  send("lock.txt");
  EXPECT_TRUE(build().is_built);
  EXPECT_FALSE(has("venv/added"));
}

TEST_F(BuiltEnvironment, IsOfNoUseOnceItsPythonIsGone) {
  send("lock.txt");
  build();
  add_program("bin/python3", "echo 3.11.2 x86_64 5.10 0 glibc 2.36\n");
  std::filesystem::remove(home_.path() / "real");
  const PythonReply reply = ready();
  EXPECT_FALSE(reply.is_built);
  EXPECT_EQ(reply.fault, "its python3 leads nowhere");
}

TEST_F(BuiltEnvironment, ARunThatGoesOnKeepsIts) {
  send("lock.txt");
  home_.write(".dtool/runs/r_1/machine0/script", "python=" + folder("venv/bin/python3"));
  EXPECT_TRUE(build().is_built) << "there is nothing to lose";
  EXPECT_EQ(refusal([&] { build(); }), "") << "nothing is lost";
  change();
  send("lock.txt");
  const std::string lost = "the environment " + folder("venv") +
                           " is not as it was built: added was added, and the run r_1 uses it\n"
                           "dtool kill r_1, or wait for its end: then it is built anew";
  EXPECT_EQ(refusal([&] { ready(); }), lost);
  EXPECT_EQ(refusal([&] { build(); }), lost);
  EXPECT_TRUE(has("venv/added"));
  home_.write(".dtool/runs/r_1/machine0/exit_code", "0");
  EXPECT_EQ(ready().fault, "added was added");
}

TEST_F(BuiltEnvironment, OthersGoThatWereNotUsedForAMonthUnlessARunUsesThem) {
  const auto other = [this](char letter, int days) {
    const auto all = home_.path() / ".dtool/environments" / std::string(64, letter);
    std::filesystem::create_directories(all / "venv");
    std::filesystem::last_write_time(
        all, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * days));
    return all;
  };
  const auto young = other('b', 29);
  const auto old = other('c', 31);
  const auto used = other('d', 31);
  home_.write(".dtool/runs/r_1/machine0/script", "environment=" + used.filename().string());
  send("lock.txt");
  EXPECT_TRUE(build().is_built);
  EXPECT_TRUE(std::filesystem::exists(young));
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(used));
}

}  // namespace
}  // namespace dtool::host

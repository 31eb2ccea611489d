// SPDX-License-Identifier: MIT
// Who decides what a path leads to, in folders of other users.
#include "ssh/host/strangers.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kAnn = 65534;

class StrangersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be someone else";
    ::chmod(scratch_.path().c_str(), 0700);
  }

  std::string at(const std::string& name) const { return (scratch_.path() / name).native(); }
  void folder(const std::string& name, mode_t mode, uid_t owner = 0) const {
    fs::create_directory(at(name));
    EXPECT_EQ(::chmod(at(name).c_str(), mode), 0);
    EXPECT_EQ(::lchown(at(name).c_str(), owner, owner), 0);
  }
  void link(const std::string& name, const std::string& target, uid_t owner = 0) const {
    fs::create_symlink(target, at(name));
    EXPECT_EQ(::lchown(at(name).c_str(), owner, owner), 0);
  }
  /// The name of what is somebody else's; or empty.
  std::string found(const std::string& name, Strangers which = Strangers::uninvited) const {
    const auto stranger = find_stranger(at(name), which);
    if (!stranger) return "";
    EXPECT_EQ(stranger->user, kAnn);
    return fs::path(stranger->path).lexically_relative(scratch_.path()).native();
  }

  tests::TemporaryFolder scratch_;
};

TEST_F(StrangersTest, WhereOthersWriteTheyMayHavePutIt) {
  for (const mode_t mode : {01777U, 0777U, 0770U}) {
    const std::string open = "open" + std::to_string(mode);
    folder(open, mode);
    folder(open + "/own", 0755);
    folder(open + "/anns", 0777, kAnn);
    folder(open + "/anns/own", 0755);
    EXPECT_EQ(found(open), "");
    EXPECT_EQ(found(open + "/own"), "");
    EXPECT_EQ(found(open + "/missing/too"), "");
    for (const std::string name : {"/anns", "/anns/own", "/anns/missing"})
      EXPECT_EQ(found(open + name), open + "/anns");
  }
}

TEST_F(StrangersTest, ALinkAndWhereItLeadsAreOnTheWay) {
  folder("open", 01777);
  folder("open/anns", 0755, kAnn);
  folder("own", 0755);
  link("open/to_own", at("own"), kAnn);
  link("to_anns", "open/anns");
  link("own/up", "../to_anns/x");
  EXPECT_EQ(found("open/to_own"), "open/to_own");
  EXPECT_EQ(found("to_anns/x"), "open/anns");
  EXPECT_EQ(found("own/up/y"), "open/anns");
  EXPECT_EQ(found("open/anns/../../own"), "open/anns");
  link("round", "round");
  EXPECT_EQ(found("round/x"), "");
}

TEST_F(StrangersTest, AsManyLinksAsTheKernelFollowsAreFollowed) {
  folder("anns", 0755, kAnn);
  std::string before = "anns";
  for (int i = 1; i <= 40; ++i) {
    const std::string name = "link" + std::to_string(i);
    link(name, before);
    before = name;
  }
  EXPECT_EQ(found(before, Strangers::all), "anns");
  link("one_more", before);
  EXPECT_EQ(found("one_more", Strangers::all), "");
}

TEST_F(StrangersTest, EmptyPartsAndDotsLeadNowhere) {
  folder("anns", 0755, kAnn);
  folder("own", 0755);
  EXPECT_EQ(found("own//.././/anns/", Strangers::all), "anns");
  EXPECT_EQ(find_stranger(at("anns"), Strangers::all)->path, at("anns"));
  EXPECT_FALSE(find_stranger("/..", Strangers::all));
}

TEST_F(StrangersTest, ALinkLeadsOnFromItsFolderOrFromTheTop) {
  folder("own", 0755);
  folder("own/anns", 0755, kAnn);
  link("own/near", "anns");
  folder("own/a", 0755, kAnn);
  link("own/short", "a");
  link("own/far", at("own/anns"));
  EXPECT_EQ(found("own/near", Strangers::all), "own/anns");
  EXPECT_EQ(found("own/far", Strangers::all), "own/anns");
  EXPECT_EQ(found("own/short", Strangers::all), "own/a");
}

TEST_F(StrangersTest, AreNeitherThisUserNorRoot) {
  EXPECT_FALSE(is_strangers(0));
  EXPECT_TRUE(is_strangers(kAnn));
  ASSERT_EQ(::seteuid(kAnn), 0);
  const bool are_strangers[] = {is_strangers(0), is_strangers(kAnn), is_strangers(kAnn - 1)};
  ASSERT_EQ(::seteuid(0), 0);
  ::prctl(PR_SET_DUMPABLE, 1);
  EXPECT_FALSE(are_strangers[0]);
  EXPECT_FALSE(are_strangers[1]);
  EXPECT_TRUE(are_strangers[2]);
}

TEST_F(StrangersTest, WhomRootLetInIsNoStrangerThere) {
  folder("group", 0770, kAnn);
  folder("group/anns", 0755, kAnn);
  folder("group/own", 0755);
  folder("group/bobs", 0755, kAnn - 1);
  EXPECT_EQ(found("group/anns"), "");
  EXPECT_EQ(found("group/own"), "");
  EXPECT_EQ(found("group/own", Strangers::all), "group");
  EXPECT_EQ(find_stranger(at("group/bobs"), Strangers::uninvited)->user, kAnn - 1);
}

TEST(Stranger, IsToldByName) {
  EXPECT_EQ(to_string(Stranger{"/x/y", 0}), "/x/y belongs to root");
}

TEST(NameOfUser, IsThatOfThePasswordFileOrTheNumber) {
  EXPECT_EQ(name_of_user(0), "root");
  EXPECT_EQ(name_of_user(kAnn), "nobody");
  EXPECT_EQ(name_of_user(4'000'000'001U), "4000000001");
}

}  // namespace
}  // namespace dtool::host

// SPDX-License-Identifier: MIT
// Which versions of what dtool brought to a host are out of use.
#include "ssh/host/versions.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

TEST(IsHash, TakesASha256InLowerCaseHexAlone) {
  EXPECT_TRUE(is_hash(std::string(32, '0') + std::string(16, '9') + std::string(16, 'f')));
  for (const std::string& name : {std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'A'),
                                  std::string(63, 'a') + "g", std::string(64, '/'), std::string()})
    EXPECT_FALSE(is_hash(name)) << name;
}

class MarkUsed : public testing::Test {
 protected:
  /// A folder that was used so long ago.
  std::string version(const std::string& name, time_t age) const {
    const std::string path = folder_.path() / name;
    fs::create_directories(path);
    set_age(path, age);
    return path;
  }
  static void set_age(const std::string& path, time_t age) {
    const timespec time{std::time(nullptr) - age, 0};
    const timespec times[] = {time, time};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  static time_t age_of_folder(const std::string& path) {
    struct stat found {};
    EXPECT_EQ(::stat(path.c_str(), &found), 0);
    return std::time(nullptr) - found.st_mtim.tv_sec;
  }
  static std::string hash(char digit) { return std::string(64, digit); }

  static constexpr time_t kMonth = 2'592'000;
  tests::TemporaryFolder folder_;
};

TEST_F(MarkUsed, NamesTheOthersThatWereNotUsedForAMonth) {
  const std::string own = version(hash('0'), 2 * kMonth);
  const std::string old = version(hash('1'), kMonth + 20);
  version(hash('2'), kMonth - 300);
  version(hash('3'), 0);
  version("other", 2 * kMonth);
  set_age(folder_.write(hash('4')), 2 * kMonth);
  fs::create_directory_symlink(old, folder_.path() / hash('5'));
  EXPECT_EQ(mark_used(own), std::set<std::string>{old});
  EXPECT_LT(age_of_folder(own), kMonth) << "it is marked";
  EXPECT_GT(age_of_folder(old), kMonth);
}

TEST_F(MarkUsed, LeavesAFolderAloneThatIsNoVersion) {
  const std::string other = version("other", 2 * kMonth);
  version(hash('1'), 2 * kMonth);
  EXPECT_TRUE(mark_used(other).empty());
  EXPECT_GT(age_of_folder(other), kMonth);
  EXPECT_TRUE(mark_used(folder_.path() / hash('6')).empty()) << "it is not there";
}

}  // namespace
}  // namespace dtool::host

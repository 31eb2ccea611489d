// SPDX-License-Identifier: MIT
// dtool's version stands in several files.
#include "killfiles/version.h"

#include <gtest/gtest.h>

#include "killfiles/whole_file.h"

namespace dtool::killfiles {
namespace {

TEST(Version, IsTheNewestOfTheChangelogAndTheOneToCite) {
  const std::string version(dtool_version());
  const std::string changes = read_whole(DTOOL_SOURCE_DIR "/CHANGELOG.md");
  const std::size_t newest = changes.find("\n## ");
  ASSERT_NE(newest, changes.npos);
  EXPECT_EQ(changes.substr(newest, version.size() + 5), "\n## " + version + "\n");
  const std::string citation = read_whole(DTOOL_SOURCE_DIR "/CITATION.cff");
  EXPECT_NE(citation.find("\nversion: " + version + "\n"), citation.npos);
}

}  // namespace
}  // namespace dtool::killfiles

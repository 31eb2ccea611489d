// Which lines of a known_hosts file may be about a host.
#include "ssh/known_hosts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

constexpr const char* kKey =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEMtKFlkSfqGob2CtTT+En6Xj7zSm5J/DR4iKmHvX5da";
// By `ssh-keygen -H`.
constexpr const char* kHashedGpu7 = "|1|AfkFk8Qoc4EeiN+DMk6zh8MJKAY=|42bTzW2Z/NRIaTRQ91/KeYsFUqs=";
constexpr const char* kHashedGpu7Port2222 =
    "|1|K9TtxCyXjEGEbeZSxyI7/QPbepU=|rpf82sBUml4fC2an630se3A9dAo=";
constexpr const char* kHashedGpu8 = "|1|tTjlkARLyyN1nNvb5iqbrGsewxM=|zEoCr4mtF+VcgGLR6iCIVLQENoQ=";

class KnownHostsTest : public testing::Test {
 protected:
  void write(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& each : names) text += line(each);
    file_ = folder_.write("known_hosts", text);
  }

  static std::string line(const std::string& names) { return fmt::format("{} {}\n", names, kKey); }

  std::string about(const std::string& name, std::uint16_t port = 22) {
    return KnownHostsFile(file_).lines_about(name, port);
  }

  tests::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "none";
};

TEST_F(KnownHostsTest, FindsALineByAnyOfItsNamesInAnyCase) {
  write({"gpu1,10.0.0.1", "gpu2,10.0.0.2", "GPU1"});
  EXPECT_EQ(about("gpu1"), line("gpu1,10.0.0.1") + line("GPU1"));
  EXPECT_EQ(about("10.0.0.2"), line("gpu2,10.0.0.2"));
  EXPECT_EQ(about("Gpu2"), line("gpu2,10.0.0.2"));
  EXPECT_EQ(about("gpu"), "");
}

TEST_F(KnownHostsTest, FindsHashedNames) {
  write({kHashedGpu8, kHashedGpu7});
  EXPECT_EQ(about("gpu7"), line(kHashedGpu7));
  EXPECT_EQ(about("GPU8"), line(kHashedGpu8));
  EXPECT_EQ(about("gpu9"), "");
}

TEST_F(KnownHostsTest, KeepsPortsApart) {
  write({"[gpu7]:2222", "[gpu8]:2222", "[gpu7]:22", kHashedGpu7Port2222});
  EXPECT_EQ(about("gpu7", 2222),
            line("[gpu7]:2222") + line("[gpu7]:22") + line(kHashedGpu7Port2222));
  EXPECT_EQ(about("gpu7"), line("[gpu7]:22"));
}

TEST_F(KnownHostsTest, LeavesPatternsAndMarkersToLibssh) {
  write({"*.cluster,!gpu1.cluster", "@revoked gpu3", "gpu?", "|2|what|ever"});
  EXPECT_EQ(about("somebody"), line("*.cluster,!gpu1.cluster") + line("@revoked gpu3") +
                                   line("gpu?") + line("|2|what|ever"));
}

TEST_F(KnownHostsTest, KnowsNobodyWithoutAFile) {
  EXPECT_EQ(about("gpu1"), "");
}

TEST_F(KnownHostsTest, ReadsAFileAgainThatHasChanged) {
  write({"gpu1"});
  KnownHostsFile file(file_);
  EXPECT_EQ(file.lines_about("gpu2", 22), "");
  write({"gpu1", "gpu2"});
  EXPECT_EQ(file.lines_about("gpu2", 22), line("gpu2"));
}

TEST_F(KnownHostsTest, GivesTheLinesInAFileOfTheirOwn) {
  write({"gpu1", "gpu2"});
  KnownHosts known;
  const OwnedFd excerpt = known.excerpt(file_, "gpu2", 22);
  std::array<char, 200> bytes{};
  const ssize_t size = ::pread(excerpt.get(), bytes.data(), bytes.size(), 0);
  EXPECT_EQ(std::string(bytes.data(), static_cast<std::size_t>(size)), line("gpu2"));
  EXPECT_FALSE(known.excerpt(file_, "gpu3", 22));
}

}  // namespace
}  // namespace dtool::ssh

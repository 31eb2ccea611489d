// A host's side of a push, on this machine: what its scripts do where a whole push does not lead.
#include "sync/push_steps.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "ssh/fleet.h"
#include "ssh/script.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::tree_sync {
namespace {

class PushStepsTest : public ::testing::Test {
 protected:
  PushStepsTest() {
    ::setenv("HOME", scratch_.path().c_str(), 1);
    scratch_.write("tree/a");
  }

  ssh::HostResult run(ssh::Command command) {
    ssh::Listener nobody;
    return remote_->run({{0, std::move(command)}}, nobody, {}).at(0);
  }

  tests::TemporaryFolder scratch_;
  const Tree tree_ = {scratch_.path() / "tree", {"a"}, 0, {}};
  std::unique_ptr<ssh::Remote> remote_ = ssh::make_fleet({ssh::parse_host("local")}, {});
};

TEST_F(PushStepsTest, APackageThatNeverEndsHoldsUpNobody) {
  const Listing listing = list_tree(tree_);
  Place place{"~/code", listing.fingerprint, listing.digest};
  ssh::HostResult answer = run(ask_command(tree_, place, ""));
  const auto asked = read_asked(answer);
  ASSERT_TRUE(asked && asked->compression) << answer.error << answer.err;
  auto endless = std::make_shared<ssh::ProgramOutput>();
  endless->arguments = {"tail", "-f", "/dev/null"};
  for (const Seal seal : {Seal::yes, Seal::no}) {
    const auto package = pack(tree_, listing, {}, *asked->compression, seal);
    ASSERT_TRUE(package);
    Package silent = *package;
    silent.stream = endless;
    place.patience = std::chrono::seconds(1);
    ssh::HostResult result = run(unpack_command(silent, *asked, place));
    EXPECT_NE(result.out.find("dtool-answer broken="), std::string::npos) << result.out;
    ASSERT_TRUE(read_unpacked(result)) << result.err;
    EXPECT_FALSE(read_unpacked(result)->is_whole);

    result = run(unpack_command(*package, *asked, place));
    ASSERT_TRUE(read_unpacked(result));
    EXPECT_TRUE(read_unpacked(result)->is_whole) << result.out << result.err;
  }
}

}  // namespace
}  // namespace dtool::tree_sync

// SPDX-License-Identifier: MIT
// SHA-256 and HMAC give what their standards' own examples say.
#include "killfiles/channel/sha256.h"

#include <gtest/gtest.h>

namespace dtool::host {
namespace {

TEST(HostSha256, IsAsFips180Says) {
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(HostSha256, IsTheSameWithoutTheProcessorsInstructionsForIt) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * i % 251);
  for (const std::size_t size : {0UL, 3UL, 55UL, 56UL, 64UL, 1000UL}) {
    Sha256 plain(Sha256::Way::plain);
    plain.add(text.substr(0, size));
    EXPECT_EQ(plain.finish(), sha256(text.substr(0, size))) << size;
  }
  Sha256 plain(Sha256::Way::plain);
  plain.add("abc");
  EXPECT_EQ(to_hex(plain.finish()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(HostSha256, DoesNotDependOnThePieces) {
  const std::string text(200, 'x');
  for (std::size_t size = 1; size <= text.size(); ++size) {
    Sha256 hash;
    for (std::size_t at = 0; at < text.size(); at += size) hash.add(text.substr(at, size));
    EXPECT_EQ(hash.finish(), sha256(text)) << size;
  }
}

TEST(HostSha256, GoesOnFromAState) {
  const std::string text(200, 'x');
  for (std::size_t size = 0; size <= text.size(); ++size) {
    Sha256 before;
    before.add(text.substr(0, size));
    Sha256 after;
    ASSERT_TRUE(after.go_on_from(before.state()));
    after.add(text.substr(size));
    EXPECT_EQ(after.finish(), sha256(text)) << size;
  }
  EXPECT_FALSE(Sha256().go_on_from("no state"));
}

TEST(HostHmac, IsAsRfc4231Says) {
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(to_hex(hmac_sha256(std::string(131, '\xaa'),
                               "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

/// The values are those of Python's hmac.
TEST(HostHmac, TakesAKeyOfABlockAsItIs) {
  EXPECT_EQ(to_hex(hmac_sha256(std::string(64, 'k'), "text")),
            "0414bb1d8c0c4556cdb2028727b16610ae377b1a194b6db1f853d4297f2329bc");
  EXPECT_EQ(to_hex(hmac_sha256(std::string(65, 'k'), "text")),
            "5b69580123e3d7e788b7e8352ac37a3247b911c5ec0837147b74109a6382d3f5");
}

TEST(HostSha256, AnotherSizeIsNoState) {
  Sha256 hash;
  hash.add("abc");
  const std::string state = hash.state();
  EXPECT_FALSE(hash.go_on_from(state + "x"));
  EXPECT_FALSE(hash.go_on_from(state.substr(1)));
  EXPECT_EQ(hash.finish(), sha256("abc")) << "nothing changes";
}

TEST(AreEqual, ComparesAllOfBoth) {
  EXPECT_TRUE(are_equal("abc", "abc"));
  EXPECT_TRUE(are_equal("", ""));
  EXPECT_FALSE(are_equal("abc", "abd"));
  EXPECT_FALSE(are_equal("abc", "xbc"));
  EXPECT_FALSE(are_equal("abc", "ab"));
  EXPECT_FALSE(are_equal("ab", "abc"));
}

}  // namespace
}  // namespace dtool::host

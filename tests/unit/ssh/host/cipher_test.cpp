// SPDX-License-Identifier: MIT
// The examples of RFC 8439.
#include "ssh/host/cipher.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace dtool::host {
namespace {

TEST(Cipher, IsChaCha20) {
  std::string key;
  for (char each = 0; each < 32; ++each) key += each;
  const std::string nonce("\0\0\0\0\0\0\0\x4a\0\0\0\0", 12);
  std::string text =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
      "future, sunscreen would be it.";
  const std::string sealed =
      "\x6e\x2e\x35\x9a\x25\x68\xf9\x80\x41\xba\x07\x28\xdd\x0d\x69\x81"
      "\xe9\x7e\x7a\xec\x1d\x43\x60\xc2\x0a\x27\xaf\xcc\xfd\x9f\xae\x0b"
      "\xf9\x1b\x65\xc5\x52\x47\x33\xab\x8f\x59\x3d\xab\xcd\x62\xb3\x57"
      "\x16\x39\xd6\x24\xe6\x51\x52\xab\x8f\x53\x0c\x35\x9f\x08\x61\xd8"
      "\x07\xca\x0d\xbf\x50\x0d\x6a\x61\x56\xa3\x8e\x08\x8a\x22\xb6\x5e"
      "\x52\xbc\x51\x4d\x16\xcc\xf8\x06\x81\x8c\xe9\x1a\xb7\x79\x37\x36"
      "\x5a\xf9\x0b\xbf\x74\xa3\x5b\xe6\xb4\x0b\x8e\xed\xf2\x78\x5e\x42"
      "\x87\x4d";
  Cipher(key, nonce, 1).apply(text.data(), text.size());
  EXPECT_EQ(text, sealed);
}

TEST(Cipher, OpensWhatItSealedInPiecesOfAnySize) {
  const std::string text(1000, 'x');
  std::string bytes = text;
  Cipher("a key").apply(bytes.data(), bytes.size());
  EXPECT_NE(bytes, text);
  Cipher opener("a key");
  for (std::size_t at = 0; at < bytes.size(); at += 77)
    opener.apply(bytes.data() + at, std::min<std::size_t>(77, bytes.size() - at));
  EXPECT_EQ(bytes, text);
}

std::string stream(const std::string& nonce, std::uint32_t counter, std::size_t bytes) {
  std::string zeros(bytes, '\0');
  Cipher(std::string(32, 'k'), nonce, counter).apply(zeros.data(), zeros.size());
  return zeros;
}

TEST(Cipher, CountsItsBlocksOneByOne) {
  const std::string nonce(12, '\0');
  std::string blocks;
  for (std::uint32_t each = 0; each < 20; ++each) blocks += stream(nonce, each, 64);
  EXPECT_EQ(stream(nonce, 0, blocks.size()), blocks);
}

TEST(Cipher, ACountThatBeginsAnewGoesOnWithAnotherNonce) {
  const std::string first(12, '\0');
  const std::string second("\1\0\0\0\0\0\0\0\0\0\0\0", 12);
  for (const std::uint32_t before : {1U, 3U, 7U, 8U, 9U, 16U})
    EXPECT_EQ(stream(first, 0U - before, 64 * 30),
              stream(first, 0U - before, 64 * before) + stream(second, 0, 64 * (30 - before)))
        << before;
}

}  // namespace
}  // namespace dtool::host

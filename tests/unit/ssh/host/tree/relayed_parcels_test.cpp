// SPDX-License-Identifier: MIT
// Parcels that hosts pass on to each other: unpacked while the next one comes, proven before that,
// and told of with a later reply.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "killfiles/channel/channel.h"
#include "killfiles/channel/sha256.h"
#include "ssh/host/frame_input.h"
#include "ssh/host/network.h"
#include "ssh/host/tree/take_parcel.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/tree.h"
#include "sync/package_writer.h"
#include "tests/unit/ssh/host/tree/parcels_here.h"

namespace dtool::host {
namespace {

const std::string kKey(64, 'a');

/// What the launcher sends of a parcel.
struct Sealed {
  std::int64_t number = 0;
  std::string bytes = {};
};

class RelayedParcelsTest : public TakeParcelTest {
 protected:
  Sealed seal(std::int64_t number, const std::string& name, const std::string& content,
              std::optional<std::string> sum = {}) {
    Sealed sealed{number};
    const ssh::SharedBytes::Write write = [&](std::string_view more) { sealed.bytes += more; };
    PackageWriter writer(write, Compression::zstd, kKey, 0);
    const CopyEntry entry = entry_of(name, content);
    writer.add(to_frame(CopyPiece{entry, 0, content.size()}));
    writer.add(to_frame(Kind::package_bytes, content));
    writer.add(to_frame(CopySum{sum.value_or(to_hex(sha256(content)))}));
    writer.finish();
    return sealed;
  }
  ParcelRequest request(const CopyPlace& place, std::int64_t number) const {
    return {place, true, 10'000, RelayPart{{kKey}, {secret_}, {}, 5, number}};
  }
  ParcelReply answer(ParcelTaker& taker, const ParcelRequest& request, const std::string& input) {
    const fs::path path = scratch_.write("input", input);
    const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    FrameInput frames(descriptor.get());
    return taker.take(request, frames, [this](const TreeNews& news) {
      if (news.listens) port_ = news.port;
    });
  }
  ParcelReply from_launcher(const Sealed& parcel) {
    return answer(head_, request(place_, parcel.number), parcel.bytes);
  }
  /// Another host, with a folder of its own, takes what the first one serves.
  ParcelReply from_head(ParcelTaker& taker, const Sealed& parcel, const std::string& sha256_of) {
    ParcelRequest asked = request(below_, parcel.number);
    asked.relay->parent = RelayPart::Parent{
        "127.0.0.1", head_port_, {secret_}, parcel.bytes.size(), to_hex(sha256(sha256_of))};
    return answer(taker, asked, "");
  }
  static ParcelRequest last(const CopyPlace& place) { return {place, false, 10'000, {}, true}; }
  ParcelReply end(ParcelTaker& taker, const CopyPlace& place) {
    return answer(taker, last(place), to_frame(Kind::package_bytes, ""));
  }

  const std::string secret_ = std::string(32, '5');
  const tests::TemporaryVariable connection_{"SSH_CONNECTION", "127.0.0.1 1 127.0.0.1 22"};
  const CopyPlace below_{"~/below", "copy", 1, 1, "here", ""};
  std::uint16_t port_ = 0;
  std::uint16_t head_port_ = 0;
  ParcelTaker head_;
};

TEST_F(RelayedParcelsTest, GoFromHostToHostAndAreAllThereAfterTheLastReply) {
  ParcelTaker taker;
  for (int i = 0; i < 5; ++i) {
    const Sealed parcel = seal(i, "file" + std::to_string(i), content_ + std::to_string(i));
    EXPECT_TRUE(from_launcher(parcel).spoilt.empty());
    head_port_ = port_;
    const ParcelReply reply = from_head(taker, parcel, parcel.bytes);
    EXPECT_EQ(reply.missed, "");
  }
  EXPECT_TRUE(end(taker, below_).spoilt.empty());
  EXPECT_TRUE(end(head_, place_).spoilt.empty());
  for (const std::string folder : {"data", "below"})
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(scratch_.read(folder + "/file" + std::to_string(i)), content_ + std::to_string(i));
}

TEST_F(RelayedParcelsTest, OfOtherBytesNothingIsUnpackedAndTheSenderIsToldOf) {
  const Sealed parcel = seal(0, "file", content_);
  from_launcher(parcel);
  head_port_ = port_;
  ParcelTaker taker;
  const ParcelReply reply = from_head(taker, parcel, "another parcel");
  EXPECT_TRUE(reply.is_spoilt);
  EXPECT_NE(reply.missed, "");
  end(taker, below_);
  EXPECT_FALSE(fs::exists(scratch_.path() / "below/file"));
}

/// It proves itself, and then sends one byte after the other.
void drip(const Descriptor& listener, const std::string& secret) {
  pollfd polled{listener.get(), POLLIN, 0};
  ::poll(&polled, 1, 10'000);
  const Descriptor peer(::accept(listener.get(), nullptr, nullptr));
  std::string hello(kHelloSize, '\0');
  ::recv(peer.get(), hello.data(), hello.size(), MSG_WAITALL);
  const std::string welcome = make_welcome(secret, hello);
  ::send(peer.get(), welcome.data(), welcome.size(), MSG_NOSIGNAL);
  ::usleep(100'000);
  for (int i = 0; i < 200 && ::send(peer.get(), "x", 1, MSG_NOSIGNAL) == 1; ++i) ::usleep(50'000);
}

TEST_F(RelayedParcelsTest, AHostThatSendsAByteNowAndThenIsLeft) {
  const Descriptor listener = listen_on(0);
  head_port_ = port_of(listener);
  auto served = std::async(std::launch::async, [&] { drip(listener, secret_); });
  ParcelTaker taker;
  ParcelRequest asked = request(below_, 0);
  asked.patience_ms = 1500;
  asked.relay->parent =
      RelayPart::Parent{"127.0.0.1", head_port_, {secret_}, 1'000'000, to_hex(sha256(""))};
  const auto began = std::chrono::steady_clock::now();
  EXPECT_NE(answer(taker, asked, "").missed.find("sends too little"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
}

TEST_F(RelayedParcelsTest, AHostThatIsNotThereIsToldOfAndTheParcelCanComeAgain) {
  const Sealed parcel = seal(0, "file", content_);
  head_port_ = 1;
  ParcelTaker taker;
  EXPECT_NE(from_head(taker, parcel, parcel.bytes).missed, "");
  from_launcher(parcel);
  head_port_ = port_;
  EXPECT_EQ(from_head(taker, parcel, parcel.bytes).missed, "");
  end(taker, below_);
  EXPECT_EQ(scratch_.read("below/file"), content_);
}

TEST_F(RelayedParcelsTest, AFileWithAWrongChecksumIsNamedByALaterReply) {
  EXPECT_TRUE(from_launcher(seal(0, "file", content_, std::string(64, '0'))).spoilt.empty());
  EXPECT_EQ(end(head_, place_).spoilt, std::vector<std::string>{"file"});
  EXPECT_FALSE(fs::exists(scratch_.path() / "data/file"));
}

TEST_F(RelayedParcelsTest, WhatCannotBeWrittenIsRefusedWithTheNextRequest) {
  from_launcher(seal(0, "sub/file", content_));
  head_.end();
  fs::remove_all(scratch_.path() / "data/sub");
  scratch_.write("data/sub", "a file");
  from_launcher(seal(1, "sub/other", content_));
  EXPECT_THROW(end(head_, place_), std::exception);
}

TEST_F(RelayedParcelsTest, AParcelWithoutPassingOnComesAfterOneThatIsBeingUnpacked) {
  from_launcher(seal(0, "file", content_));
  EXPECT_TRUE(send("plain", 0, 5).spoilt.empty());
  EXPECT_EQ(scratch_.read("data/sub/file"), "plain");
  end(head_, place_);
  EXPECT_EQ(scratch_.read("data/file"), content_);
}

TEST_F(RelayedParcelsTest, TheFolderIsLockedNoLongerThanWorkGoesOn) {
  from_launcher(seal(0, "file", content_));
  head_.end();
  ParcelTaker another;  // of the same copy and host, as after a lost connection
  EXPECT_TRUE(answer(another, {place_, false, 10'000, {}}, to_frame(Kind::package_bytes, ""))
                  .spoilt.empty());
}

}  // namespace
}  // namespace dtool::host

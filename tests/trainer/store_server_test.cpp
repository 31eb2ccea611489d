// SPDX-License-Identifier: MIT
// The run's store as its clients see it, over real sockets and without LibTorch.
#include "trainer/ranks/store_server.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>

#include "tests/trainer/store_client.h"
#include "trainer/launch/network.h"

namespace dtool::trainer {
namespace {

using std::chrono::seconds;

class Store : public testing::Test {
 protected:
  Store() : server_(endpoint(), 10) {}

  Endpoint endpoint() const { return {"127.0.0.1", port_.number()}; }
  std::unique_ptr<StoreClient> client() const { return std::make_unique<StoreClient>(endpoint()); }
  static std::string hear(StoreClient& client) { return client.hear(seconds(60)); }
  static std::string ask(StoreClient& client, const std::string& request) {
    client.say(request);
    return hear(client);
  }

  ReservedPort port_;
  StoreServer server_;
};

TEST_F(Store, KeepsWhatAnyClientPutThere) {
  const auto one = client();
  const auto two = client();
  EXPECT_EQ(ask(*one, "1 set x61 x00ff"), "1 done");
  EXPECT_EQ(ask(*two, "7 get x61"), "7 value x00ff");
  EXPECT_EQ(ask(*two, "8 check x61"), "8 yes");
  EXPECT_EQ(ask(*two, "9 check x61 x62"), "9 no");
  EXPECT_EQ(ask(*two, "10 count"), "10 number 1");
  EXPECT_EQ(ask(*two, "11 delete x61"), "11 yes");
  EXPECT_EQ(ask(*two, "12 delete x61"), "12 no");
}

TEST_F(Store, AddsAndSwapsInOneStep) {
  const auto one = client();
  EXPECT_EQ(ask(*one, "1 add x61 2"), "1 number 2");
  EXPECT_EQ(ask(*one, "2 add x61 -5"), "2 number -3");
  EXPECT_EQ(ask(*one, "3 swap x62 x x01"), "3 value x01");
  EXPECT_EQ(ask(*one, "4 swap x62 x x02"), "4 value x01");
  EXPECT_EQ(ask(*one, "5 swap x62 x01 x02"), "5 value x02");
  EXPECT_EQ(ask(*one, "6 swap x63 x05 x06"), "6 value x05");
  EXPECT_EQ(ask(*one, "7 check x63"), "7 no");
}

TEST_F(Store, AnswersWhoWaitsOnceAllIsThere) {
  const auto one = client();
  const auto two = client();
  one->say("1 wait x61 x62");
  EXPECT_EQ(ask(*one, "2 count"), "2 number 0");
  EXPECT_EQ(ask(*two, "1 set x62 x"), "1 done");
  EXPECT_EQ(ask(*one, "3 count"), "3 number 1");
  EXPECT_EQ(ask(*two, "2 add x61 1"), "2 number 1");
  EXPECT_EQ(hear(*one), "1 done");
}

TEST_F(Store, FulfilsTheWillOfAConnectionThatEnds) {
  const auto one = client();
  auto killed = client();
  auto leaving = client();
  auto late = client();
  EXPECT_EQ(ask(*killed, "1 will x61 x01 0 x"), "1 done");
  EXPECT_EQ(ask(*leaving, "1 will x62 x02 0 x"), "1 done");
  EXPECT_EQ(ask(*leaving, "2 will x62 x 0 x"), "2 done");
  EXPECT_EQ(ask(*late, "1 will x61 x03 0 x"), "1 done");
  EXPECT_EQ(ask(*one, "1 check x61"), "1 no");
  leaving.reset();
  one->say("2 wait x61");
  killed.reset();
  EXPECT_EQ(hear(*one), "2 done");
  late.reset();
  EXPECT_EQ(ask(*one, "3 get x61"), "3 value x01");
  EXPECT_EQ(ask(*one, "4 check x62"), "4 no");
}

TEST_F(Store, TellsOfAConnectionThatIsSilent) {
  const auto silent = client();
  const auto asking = client();
  const auto listening = client();
  EXPECT_EQ(ask(*silent, "1 will x61 x 2 x01"), "1 done");
  EXPECT_EQ(ask(*asking, "1 will x62 x 2 x02"), "1 done");
  EXPECT_EQ(ask(*listening, "1 will x63 x 2 x03"), "1 done");
  EXPECT_EQ(ask(*listening, "2 will x63 x 2 x"), "2 done");
  for (int i = 0; i < 40; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(ask(*asking, "2 check x62"), "2 no");
  }
  EXPECT_EQ(ask(*listening, "3 get x61"), "3 value x01");
  EXPECT_EQ(ask(*listening, "4 check x63"), "4 no") << "it was taken back";
}

TEST_F(Store, HangsUpOnWhoSaysNonsenseAndOnNobodyElse) {
  const auto one = client();
  EXPECT_EQ(ask(*one, "1 set x61 x00"), "1 done");
  for (const char* nonsense :
       {"", "1", "one get x61", "1 get", "1 get 61", "1 get x6", "1 get xgg", "1 add x61 many",
        "1 set x61", "1 will x61 x 1", "1 will x61 x -1 x62", "1 will x61 x 86401 x62",
        "1 will x61", "1 will x61 1 1 x", "1 steal x61", "1 get x61 x62", "1  get x61",
        "1 get x61 ", "1 wait x62 x6"}) {
    const auto two = client();
    EXPECT_EQ(ask(*two, nonsense), "closed") << nonsense;
  }
  EXPECT_EQ(ask(*one, "2 get x61"), "2 value x00");
}

TEST_F(Store, HangsUpOnWhoAddsBeyondWhatNumbersHold) {
  const auto one = client();
  EXPECT_EQ(ask(*one, "1 add x61 9223372036854775807"), "1 number 9223372036854775807");
  const auto two = client();
  EXPECT_EQ(ask(*two, "1 add x61 1"), "closed");
  EXPECT_EQ(ask(*one, "2 add x61 -7"), "2 number 9223372036854775800");
}

TEST_F(Store, SendsAndTakesValuesOfMegabytes) {
  const auto one = client();
  const std::string value = write_bytes(std::string(3'000'000, 'v'));
  EXPECT_EQ(ask(*one, "1 set x61 " + value), "1 done");
  EXPECT_TRUE(ask(*one, "2 get x61") == "2 value " + value);  // not shown: it is long
}

TEST(StoreBytes, ComeBackAsTheyWere) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(read_bytes(write_bytes(all)), all);
  EXPECT_EQ(read_bytes("x"), "");
  EXPECT_THROW(read_bytes(""), std::invalid_argument);
  EXPECT_THROW(read_bytes("x0"), std::invalid_argument);
}

}  // namespace
}  // namespace dtool::trainer

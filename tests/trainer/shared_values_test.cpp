// SPDX-License-Identifier: MIT
// Values that one process wrote and others read, and the text that says where they are.
#include "trainer/data/data_offer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>
#include <vector>

using namespace dtool::trainer;

namespace {

using Values = std::pmr::vector<float>;

float* floats_in(const OpenedValues& opened) {
  return static_cast<float*>(opened.data());
}

DataOffer offer() {
  const SharedPlace place{"/proc/7/fd/9", "0123456789abcdef", 24};
  return {{1, 2, 3},
          10,
          {{{Numbers::uint8, {4, 6}, place},
            {Numbers::int64, {3}, place},
            {Numbers::float32, {3, 2}, place},
            {Numbers::float32, {3, 2}, place}}}};
}

std::string with(std::string text, const std::string& former, const std::string& other) {
  const auto at = text.find(former);
  EXPECT_NE(at, text.npos) << former;
  return text.replace(at, former.size(), other);
}

}  // namespace

TEST(SharedValues, AnotherProcessReadsWhatWasWritten) {
  SharedValues memory;
  Values values({1, 2, 3}, &memory);
  memory.freeze();
  const SharedPlace place = memory.place_of(values.data());
  const pid_t child = fork();
  if (child == 0) {
    const auto opened = OpenedValues::open(place);
    const bool right = opened && opened->size() == 12 && floats_in(*opened)[2] == 3;
    if (right) floats_in(*opened)[2] = 30;  // its own from now on
    _exit(right && floats_in(*opened)[2] == 30 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(values[2], 3);
  values[0] = 10;
  EXPECT_EQ(floats_in(*OpenedValues::open(place))[0], 1);
}

TEST(SharedValues, NobodyCanWriteWhereOthersRead) {
  SharedValues memory;
  const Values values({1, 2, 3}, &memory);
  memory.freeze();
  const int file = open(memory.place_of(values.data()).name.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_EQ(pwrite(file, "x", 1, 64), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(file, 0), -1);
  struct stat found {};
  fstat(file, &found);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  close(file);
}

TEST(SharedValues, AnythingElseIsNotTakenForThem) {
  SharedValues memory;
  const Values values({1, 2, 3}, &memory);
  const SharedPlace place = memory.place_of(values.data());
  EXPECT_FALSE(OpenedValues::open(place)) << "it can still change";
  memory.freeze();
  EXPECT_TRUE(OpenedValues::open(place));
  for (const auto& name : {std::string("/dev/zero"), std::string("/proc/self/exe"), std::string(),
                           std::string("/proc/self/fd/0"), place.name + "1"}) {
    EXPECT_FALSE(OpenedValues::open({name, place.nonce, place.size})) << name;
  }
  EXPECT_FALSE(OpenedValues::open({place.name, std::string(32, '0'), place.size}));
  EXPECT_FALSE(OpenedValues::open({place.name, "", place.size}));
  EXPECT_FALSE(OpenedValues::open({place.name, place.nonce, place.size - 1}));
  EXPECT_FALSE(OpenedValues::open({place.name, place.nonce, 0}));
  ASSERT_EQ(chmod(place.name.c_str(), 0644), 0);
  EXPECT_FALSE(OpenedValues::open(place)) << "others may read it";
  ASSERT_EQ(chmod(place.name.c_str(), 0600), 0);
  memory.forget_names();
  EXPECT_FALSE(OpenedValues::open(place)) << "its name is gone";
}

TEST(SharedValues, ReadersKeepWhatItsOwnerHasLeft) {
  const auto opened = [] {
    SharedValues memory;
    const Values values({1, 2, 3}, &memory);
    memory.freeze();
    return OpenedValues::open(memory.place_of(values.data()));
  }();
  ASSERT_TRUE(opened);
  EXPECT_EQ(floats_in(*opened)[1], 2);
}

TEST(SharedValues, MoreThanTheMachineHasIsRefusedAtOnce) {
  constexpr std::size_t k32Tebibytes = std::size_t{1} << 45U;
  SharedValues memory;
  try {
    (void)memory.allocate(k32Tebibytes);
    FAIL() << "it is there";
  } catch (const std::system_error& problem) {
    EXPECT_EQ(problem.code(), std::errc::not_enough_memory);
  }
}

TEST(SharedValues, TheyLieAsTheirTypeWantsItOrAreRefused) {
  SharedValues memory;
  const auto address = [&](std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(memory.allocate(100, alignment));
  };
  EXPECT_EQ(address(64) % 64, 0U);
  EXPECT_THROW(address(128), std::bad_alloc);
  EXPECT_THROW((void)memory.allocate(std::numeric_limits<std::int64_t>::max()), std::bad_alloc);
  EXPECT_THROW((void)memory.allocate(std::numeric_limits<std::size_t>::max() - 16), std::bad_alloc);
}

TEST(SharedValues, WhatIsFreedHasNoPlaceAndTheRestKeepsIts) {
  SharedValues memory;
  void* const first = memory.allocate(10);
  void* const second = memory.allocate(20);
  memory.deallocate(first, 10);
  EXPECT_EQ(memory.place_of(second).size, 20U);
  EXPECT_THROW(memory.place_of(first), std::logic_error);
}

TEST(SharedValues, TheirPagesAreTakenAtOnce) {
  SharedValues memory;
  const void* values = memory.allocate(1 << 20);
  struct stat found {};
  ASSERT_EQ(stat(memory.place_of(values).name.c_str(), &found), 0);
  EXPECT_GE(found.st_blocks * 512, 1 << 20);
}

TEST(DataOffer, IsReadAsItWasWritten) {
  const auto read = parse_offer(to_text(offer()));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_text(*read), to_text(offer()));
  EXPECT_EQ(read->sample_shape, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(read->outputs, 10);
  EXPECT_EQ(read->tensors[0].numbers, Numbers::uint8);
  EXPECT_EQ(read->tensors[1].shape, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(read->tensors[3].place.name, "/proc/7/fd/9");
  EXPECT_EQ(read->tensors[3].place.size, 24U);
  EXPECT_EQ(size_of(Numbers::uint8), 1U);
  EXPECT_EQ(size_of(Numbers::int64), 8U);
  EXPECT_EQ(size_of(Numbers::float32), 4U);
}

TEST(DataOffer, TheLeastAndTheMostDimensionsAreRead) {
  const std::string text = with(to_text(offer()), R"("outputs":10,"shape":[1,2,3])",
                                R"("outputs":1,"shape":[1,1,1,1,1,1,1,1])");
  const auto read = parse_offer(
      with(text, R"("uint8","shape":[4,6],"size":24)", R"("uint8","shape":[1],"size":1)"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->outputs, 1);
  EXPECT_EQ(read->sample_shape.size(), 8U);
  EXPECT_EQ(read->tensors[0].place.size, 1U);
}

TEST(DataOffer, AnythingElseIsRefused) {
  const std::string text = to_text(offer());
  EXPECT_FALSE(parse_offer(""));
  EXPECT_FALSE(parse_offer(text + "x"));
  EXPECT_FALSE(parse_offer(text.substr(0, text.size() / 2)));
  for (const char* outputs : {":0,", ":-1,", ":1.5,", ":\"10\",", ":9223372036854775808,"}) {
    EXPECT_FALSE(parse_offer(with(text, ":10,", outputs))) << outputs;
  }
  for (const char* shape : {"[]", "[1,0]", "[1,[2],3]", "[1,1,1,1,1,1,1,1,1]", "6"}) {
    EXPECT_FALSE(parse_offer(with(text, "[1,2,3]", shape))) << shape;
  }
  EXPECT_FALSE(parse_offer(with(text, "uint8", "uint9")));
  EXPECT_FALSE(parse_offer(with(text, R"("size":24)", R"("size":null)")));
  EXPECT_FALSE(parse_offer(with(text, R"("nonce")", R"("once")")));
  EXPECT_FALSE(parse_offer(with(text, "[3,2]", "[3,5]"))) << "it has no 60 bytes";
  EXPECT_FALSE(parse_offer(with(text, "[3,2]", "[4294967296,4294967296]")));
  EXPECT_FALSE(parse_offer(with(text, "}]}", "},{}]}"))) << "a fifth tensor";
}

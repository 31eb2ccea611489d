// SPDX-License-Identifier: MIT
// The sets that each source gives, the batches gathered from them, and how a machine's ranks share
// them.
#include "trainer/data/data_set.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>

#include "tests/trainer/own_folder.h"
#include "tests/trainer/ranks.h"
#include "trainer/data/drawn_data.h"
#include "trainer/data/provide_data.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

using Shape1 = std::vector<std::int64_t>;

std::shared_ptr<std::pmr::memory_resource> heap() {
  return {std::pmr::get_default_resource(), [](auto*) {}};
}

class DataSetFolder : public OwnFolder {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  /// A table of inputs a, b and a target c, and one to test.
  DataSettings table(TargetKind targets) const {
    DataSettings settings{};
    settings.source = DataSource::csv;
    settings.files.paths = {write("train.csv", "a,b,c\n1,2,0\n3,4,2\n5,6,1\n"),
                            write("test.csv", "a,b,c\n7,8,1\n")};
    settings.files.targets = targets;
    return settings;
  }
};

DataSettings random_settings(std::int64_t test_samples) {
  DataSettings settings{};
  settings.source = DataSource::random;
  settings.train_samples = 5;
  settings.test_samples = test_samples;
  settings.features = 3;
  settings.random_targets = RandomTargets::linear;
  settings.drawing_seed = 4;
  return settings;
}

bool is_same(const at::Tensor& one, const at::Tensor& other) {
  return one.scalar_type() == other.scalar_type() && one.sizes() == other.sizes() &&
         one.equal(other);
}

bool is_same(const DataSets& one, const DataSets& other) {
  return is_same(one.train.inputs, other.train.inputs) &&
         is_same(one.train.targets, other.train.targets) &&
         is_same(one.test.inputs, other.test.inputs) &&
         is_same(one.test.targets, other.test.targets) && one.shape == other.shape &&
         one.outputs == other.outputs;
}

/// What each of two ranks gets.
std::vector<DataSets> load_on(Machines machines, const DataSettings& settings) {
  std::vector<DataSets> loaded(2);
  on_every_rank(2, machines, [&](const Meeting& meeting) {
    loaded[static_cast<std::size_t>(meeting.place.rank)] =
        load_on_machine(settings, meeting, at::kCPU);
  });
  return loaded;
}

}  // namespace

TEST_F(DataSetFolder, ATableHasClassesOrValuesOrIsItsOwnTarget) {
  const at::Tensor inputs = at::tensor({1., 2., 3., 4., 5., 6.}, at::kFloat).view({3, 2});
  const auto classes = load_data(table(TargetKind::classes), heap());
  EXPECT_TRUE(is_same(classes.train.inputs, inputs));
  EXPECT_TRUE(is_same(classes.train.targets, at::tensor({0, 2, 1}, at::kLong)));
  EXPECT_TRUE(is_same(classes.test.inputs, at::tensor({7., 8.}, at::kFloat).view({1, 2})));
  EXPECT_TRUE(is_same(classes.test.targets, at::tensor({1}, at::kLong)));
  EXPECT_EQ(classes.shape, (Shape1{2}));
  EXPECT_EQ(classes.outputs, 3);
  const auto values = load_data(table(TargetKind::values), heap());
  EXPECT_TRUE(is_same(values.train.targets, at::tensor({0., 2., 1.}, at::kFloat).view({3, 1})));
  EXPECT_EQ(values.outputs, 1);
  const auto none = load_data(table(TargetKind::none), heap());
  EXPECT_TRUE(none.train.targets.is_same(none.train.inputs));
  EXPECT_EQ(none.shape, (Shape1{3}));
  EXPECT_EQ(none.outputs, 3);
}

TEST_F(DataSetFolder, ATableWithoutATestsFileGivesSomeOfItsRows) {
  auto settings = table(TargetKind::values);
  settings.files.paths.pop_back();
  settings.files.csv.test_share = 0.3;
  const auto sets = load_data(settings, heap());
  EXPECT_EQ(sets.train.size(), 2);
  EXPECT_EQ(sets.test.size(), 1);
}

TEST_F(DataSetFolder, DrawnImagesStayBytes) {
  DataSettings settings{};
  settings.source = DataSource::digits;
  settings.train_samples = 3;
  settings.test_samples = 2;
  settings.drawing_seed = 9;
  const auto sets = load_data(settings, heap());
  const auto train = draw_digits(3, 9);
  const auto test = draw_digits(2, ~std::uint64_t{9});
  EXPECT_EQ(sets.train.inputs.scalar_type(), at::kByte);
  EXPECT_EQ(sets.train.inputs.sizes(), (Shape1{3, 784}));
  EXPECT_TRUE(std::equal(train.images.begin(), train.images.end(),
                         sets.train.inputs.data_ptr<std::uint8_t>()));
  EXPECT_TRUE(std::equal(train.labels.begin(), train.labels.end(),
                         sets.train.targets.data_ptr<std::int64_t>()));
  EXPECT_TRUE(std::equal(test.images.begin(), test.images.end(),
                         sets.test.inputs.data_ptr<std::uint8_t>()));
  EXPECT_EQ(sets.shape, (Shape1{1, 28, 28}));
  EXPECT_EQ(sets.outputs, 10);
}

TEST_F(DataSetFolder, ImagesOfFilesHaveTheirOwnShapeAndClasses) {
  using namespace std::string_literals;
  DataSettings settings{};
  settings.source = DataSource::idx;
  settings.files.paths = {write("a", "\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\2"s + "abcd"),
                          write("b", "\0\0\x08\1\0\0\0\2\0\4"s),
                          write("c", "\0\0\x08\3\0\0\0\1\0\0\0\1\0\0\0\2"s + "ef"),
                          write("d", "\0\0\x08\1\0\0\0\1\3"s)};
  const auto sets = load_data(settings, heap());
  EXPECT_TRUE(is_same(sets.test.inputs, at::tensor({'e', 'f'}, at::kByte).view({1, 2})));
  EXPECT_TRUE(is_same(sets.train.targets, at::tensor({0, 4}, at::kLong)));
  EXPECT_EQ(sets.shape, (Shape1{1, 1, 2}));
  EXPECT_EQ(sets.outputs, 5);
}

TEST_F(DataSetFolder, RandomValuesAreTheirOwnTestIfNoneIsDrawn) {
  const auto alone = load_data(random_settings(0), heap());
  EXPECT_TRUE(alone.test.inputs.is_same(alone.train.inputs));
  const auto sets = load_data(random_settings(2), heap());
  const auto train = draw_values(5, 3, RandomTargets::linear, 4, 4, heap().get());
  const auto test = draw_values(2, 3, RandomTargets::linear, ~std::uint64_t{4}, 4, heap().get());
  EXPECT_EQ(sets.train.inputs.sizes(), (Shape1{5, 3}));
  EXPECT_EQ(sets.train.targets.sizes(), (Shape1{5, 1}));
  EXPECT_TRUE(
      std::equal(train.inputs.begin(), train.inputs.end(), sets.train.inputs.data_ptr<float>()));
  EXPECT_TRUE(
      std::equal(test.targets.begin(), test.targets.end(), sets.test.targets.data_ptr<float>()));
  EXPECT_EQ(sets.shape, (Shape1{3}));
  EXPECT_EQ(sets.outputs, 1);
}

TEST_F(DataSetFolder, ABatchHasTheSamplesAskedForHoweverTheyAreAskedFor) {
  const at::Tensor bytes = at::arange(10, at::kByte).view({5, 2});
  const at::Tensor targets = at::arange(5, at::kLong).mul(10);
  const std::vector<std::int64_t> numbers = {4, 0, 4};
  for (const at::Tensor& inputs : {bytes, bytes.to(at::kFloat)}) {
    const DataSet set{inputs, targets};
    EXPECT_EQ(set.size(), 5);
    const double scale = inputs.scalar_type() == at::kByte ? 255 : 1;
    const at::Tensor wanted =
        at::tensor({8., 9., 0., 1., 8., 9.}, at::kFloat).view({3, 2}).div(scale);
    for (const Batch& batch : {gather(set, numbers), gather(set, at::tensor(numbers, at::kLong))}) {
      EXPECT_TRUE(is_same(batch.inputs, wanted));
      EXPECT_TRUE(is_same(batch.targets, at::tensor({40, 0, 40}, at::kLong)));
      EXPECT_EQ(batch.size(), 3);
    }
    const Batch range = gather(set, Range{1, 3});
    EXPECT_TRUE(
        is_same(range.inputs, at::tensor({2., 3., 4., 5.}, at::kFloat).view({2, 2}).div(scale)));
    EXPECT_TRUE(is_same(range.targets, at::tensor({10, 20}, at::kLong)));
  }
}

TEST_F(DataSetFolder, RanksOfAMachineShareWhatOneLoads) {
  for (const auto kind : {TargetKind::classes, TargetKind::values, TargetKind::none}) {
    const auto settings = table(kind);
    const auto wanted = load_data(settings, heap());
    const auto loaded = load_on(Machines::one, settings);
    for (const auto& each : loaded) EXPECT_TRUE(is_same(each, wanted));
    EXPECT_EQ(loaded[1].test.targets.is_same(loaded[1].test.inputs), kind == TargetKind::none);
    EXPECT_NE(loaded[0].train.inputs.data_ptr(), loaded[1].train.inputs.data_ptr());
  }
  DataSettings digits{};
  digits.source = DataSource::digits;
  digits.train_samples = digits.test_samples = 2;
  const auto wanted = load_data(digits, heap());
  for (const auto& each : load_on(Machines::one, digits)) EXPECT_TRUE(is_same(each, wanted));
}

TEST_F(DataSetFolder, OneRankOfAMachineReadsTheFiles) {
  const auto settings = table(TargetKind::values);
  auto elsewhere = settings;
  elsewhere.files.paths = {folder_ / "not there.csv", folder_ / "not there.csv"};
  const auto wanted = load_data(settings, heap());
  on_every_rank(3, Machines::one, [&](const Meeting& meeting) {
    const bool reads = meeting.place.rank == 0;
    EXPECT_TRUE(is_same(load_on_machine(reads ? settings : elsewhere, meeting, at::kCPU), wanted));
  });
}

TEST_F(DataSetFolder, MachinesLoadForThemselves) {
  const auto settings = random_settings(2);
  const auto wanted = load_data(settings, heap());
  for (const auto& each : load_on(Machines::one_a_rank, settings)) {
    EXPECT_TRUE(is_same(each, wanted));
  }
}

/// PyTorch's device without memory stands in for a GPU.
TEST_F(DataSetFolder, OnAnotherDeviceTensorsThatAreOneStayOne) {
  on_every_rank(1, Machines::one, [&](const Meeting& meeting) {
    for (const auto kind : {TargetKind::none, TargetKind::values}) {
      const auto sets = load_on_machine(table(kind), meeting, at::kMeta);
      EXPECT_EQ(sets.train.inputs.device().type(), at::kMeta);
      EXPECT_EQ(sets.test.targets.device().type(), at::kMeta);
      EXPECT_EQ(sets.train.targets.is_same(sets.train.inputs), kind == TargetKind::none);
      EXPECT_EQ(sets.test.targets.is_same(sets.test.inputs), kind == TargetKind::none);
      EXPECT_FALSE(sets.test.inputs.is_same(sets.train.inputs));
      EXPECT_EQ(sets.test.inputs.size(0), 1);
      EXPECT_EQ(sets.train.inputs.size(0), 3);
      EXPECT_EQ(sets.shape, (Shape1{kind == TargetKind::none ? 3 : 2}));
    }
  });
}

/// As with `ulimit -f`.
TEST_F(DataSetFolder, RanksLoadForThemselvesWhereNoMemoryCanBeSharedAndOneOfThemSaysSo) {
  DataSettings settings{};
  settings.source = DataSource::digits;
  settings.train_samples = settings.test_samples = 100;
  const auto wanted = load_data(settings, heap());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit low{4096, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  std::vector<DataSets> loaded(2);
  testing::internal::CaptureStdout();
  setrlimit(RLIMIT_FSIZE, &low);
  on_every_rank(2, Machines::one, [&](const Meeting& meeting) {
    loaded[static_cast<std::size_t>(meeting.place.rank)] =
        load_on_machine(settings, meeting, at::kCPU);
  });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  const std::string told = testing::internal::GetCapturedStdout();
  for (const auto& each : loaded) EXPECT_TRUE(is_same(each, wanted));
  EXPECT_TRUE(told.starts_with("note: each rank on machine 0 (")) << told;
  EXPECT_NE(told.find(") has its own copy of the data: "), told.npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
}

TEST_F(DataSetFolder, EveryRankIsToldOfAMistake) {
  auto settings = table(TargetKind::classes);
  write("test.csv", "a,b\n1,2\n");
  std::mutex mutex;
  std::vector<std::string> mistakes;
  on_every_rank(2, Machines::one, [&](const Meeting& meeting) {
    try {
      load_on_machine(settings, meeting, at::kCPU);
    } catch (const UsageError& mistake) {
      const std::lock_guard lock(mutex);
      mistakes.push_back(std::string(mistake.what()) + " | " + mistake.hint);
    }
  });
  const std::string wanted = "data.test_file: " + (folder_ / "test.csv").string() +
                             " has no column 'c' | its columns are a, b";
  EXPECT_EQ(mistakes, (std::vector<std::string>{wanted, wanted}));
}

TEST_F(DataSetFolder, EveryRankIsToldThatTheMachineHasTooLittleMemory) {
  auto settings = random_settings(0);
  settings.train_samples = std::int64_t{1} << 40;
  settings.features = 32;
  on_every_rank(2, Machines::one, [&](const Meeting& meeting) {
    try {
      load_on_machine(settings, meeting, at::kCPU);
      ADD_FAILURE() << "it is there";
    } catch (const UsageError& mistake) {
      const std::string text = mistake.what();
      EXPECT_NE(text.find(" has too little memory for the data, which its ranks share: "),
                std::string::npos)
          << text;
      EXPECT_EQ(mistake.hint, "train on fewer samples, or on machines with more memory");
    }
  });
}

TEST_F(DataSetFolder, EveryRankIsGivenThePathsOfFilesThatOneRankFetches) {
  write("a.csv", "1\n");
  std::vector<FileSettings> given(3);
  on_every_rank(3, Machines::one, [&](const Meeting& meeting) {
    auto& settings = given[static_cast<std::size_t>(meeting.place.rank)];
    settings.place.path = folder_.string();
    provide_data(settings, meeting);  // nothing, and nobody is waited for
    settings.files = {{{"a.csv", ""}}};
    provide_data(settings, meeting);
  });
  for (const auto& each : given) {
    EXPECT_EQ(each.paths, (std::vector<std::filesystem::path>{folder_ / "a.csv"}));
  }
}

TEST_F(DataSetFolder, OfSeveralMachinesEachPutsItsNameBeforeWhatItTells) {
  write("a.csv", "1\n");
  for (const auto machines : {Machines::one, Machines::one_a_rank}) {
    std::string host;
    testing::internal::CaptureStdout();
    on_every_rank(2, machines, [&](const Meeting& meeting) {
      FileSettings settings;
      settings.files = {{{"a.csv", ""}}};
      settings.place.path = folder_.string();
      settings.place.copy_to = (folder_ / (machines == Machines::one ? "one" : "two")).string();
      provide_data(settings, meeting);
      if (meeting.place.rank == 0) host = meeting.me().host;
    });
    const std::string told = testing::internal::GetCapturedStdout();
    const std::string line =
        (machines == Machines::one ? "" : host + ": ") + "a.csv: 2 bytes from ";
    EXPECT_NE(("\n" + told).find("\n" + line), told.npos) << told;
  }
}

TEST_F(DataSetFolder, NobodyGoesOnBeforeTheLastRankHasCome) {
  std::atomic<int> come = 0;
  on_every_rank(3, Machines::one, [&](const Meeting& meeting) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * meeting.place.rank));
    ++come;
    wait_for_all_ranks(meeting, "test");
    EXPECT_EQ(come, 3);
  });
  on_every_rank(1, Machines::one,
                [](const Meeting& meeting) { wait_for_all_ranks(meeting, "test"); });
}

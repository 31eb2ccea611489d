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

/// An array as numpy.save writes it.
template <class Number>
std::string npy(const std::string& type, const std::string& shape,
                const std::vector<Number>& numbers) {
  const std::string header =
      "{'descr': " + type + ", 'fortran_order': False, 'shape': (" + shape + "), }\n";
  std::string text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0';
  text += header;
  return text.append(reinterpret_cast<const char*>(numbers.data()),
                     numbers.size() * sizeof(Number));
}

using Floats = std::vector<float>;
using Wholes = std::vector<std::int64_t>;

/// Two samples with two values each and their targets, and one to test.
class ArrayFolder : public DataSetFolder {
 protected:
  ArrayFolder() { write_all(); }
  void write_all() const {
    write("x", npy<float>("'<f4'", "2, 2", {1, 2, 3, 4}));
    write("y", npy<std::int64_t>("'<i8'", "2,", {0, 2}));
    write("a", npy<float>("'<f4'", "1, 2", {5, 6}));
    write("b", npy<std::int64_t>("'<i8'", "1,", {1}));
  }

  DataSets load(TargetKind targets = TargetKind::classes) const {
    DataSettings settings{};
    settings.source = DataSource::npy;
    settings.files.targets = targets;
    for (const char* name : {"x", "y", "a", "b"}) {
      const bool is_target = *name == 'y' || *name == 'b';
      if (targets != TargetKind::none || !is_target) settings.files.paths.push_back(folder_ / name);
    }
    return load_data(settings, heap());
  }

  /// What is wrong with `content` in the place of a file, without the folder.
  std::string fault_of(const std::string& name, const std::string& content,
                       TargetKind targets = TargetKind::classes) const {
    write(name, content);
    std::string fault = "none";
    try {
      load(targets);
    } catch (const UsageError& mistake) {
      fault = std::string(mistake.what()) + " | " + mistake.hint;
      if (const auto at = fault.find(folder_.string()); at != fault.npos)
        fault.erase(at, folder_.string().size() + 1);
    }
    write_all();
    return fault;
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

Loader loader_of(const DataSettings& settings) {
  return [settings](const SampleMemory& memory) { return load_data(settings, memory); };
}

/// What each of two ranks gets.
std::vector<DataSets> load_on(Machines machines, const DataSettings& settings) {
  std::vector<DataSets> loaded(2);
  on_every_rank(2, machines, [&](const Meeting& meeting) {
    loaded[static_cast<std::size_t>(meeting.place.rank)] =
        load_on_machine(loader_of(settings), meeting, at::kCPU);
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
    EXPECT_TRUE(is_same(load_on_machine(loader_of(reads ? settings : elsewhere), meeting, at::kCPU),
                        wanted));
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
      const auto sets = load_on_machine(loader_of(table(kind)), meeting, at::kMeta);
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
        load_on_machine(loader_of(settings), meeting, at::kCPU);
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
      load_on_machine(loader_of(settings), meeting, at::kCPU);
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
      load_on_machine(loader_of(settings), meeting, at::kCPU);
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

TEST_F(ArrayFolder, HasTheSamplesAndTargetsOfItsFiles) {
  const DataSets classes = load();
  EXPECT_TRUE(classes.train.inputs.equal(at::tensor(Floats{1, 2, 3, 4}).view({2, 2})));
  EXPECT_TRUE(classes.train.targets.equal(at::tensor(Wholes{0, 2})));
  EXPECT_TRUE(classes.test.inputs.equal(at::tensor(Floats{5, 6}).view({1, 2})));
  EXPECT_EQ(classes.shape, Shape1{2});
  EXPECT_EQ(classes.outputs, 3);
  const DataSets values = load(TargetKind::values);
  EXPECT_TRUE(values.train.targets.equal(at::tensor(Floats{0, 2}).view({2, 1})));
  EXPECT_EQ(values.outputs, 1);
  const DataSets none = load(TargetKind::none);
  EXPECT_TRUE(none.train.targets.is_same(none.train.inputs));
  EXPECT_EQ(none.outputs, 2);
}

TEST_F(ArrayFolder, HasPicturesAsBytesAndOtherTypesAsFloats) {
  write("x", npy<std::uint8_t>("'|u1'", "2, 1, 2", {0, 51, 255, 0}));
  write("a", npy<std::uint8_t>("'|u1'", "1, 1, 2", {1, 2}));
  const DataSets pictures = load();
  EXPECT_EQ(pictures.shape, (Shape1{1, 1, 2}));
  EXPECT_EQ(pictures.train.inputs.scalar_type(), at::kByte);
  EXPECT_TRUE(gather(pictures.train, Range{0, 1}).inputs.allclose(at::tensor(Floats{0, 0.2F})));
  write("x", npy<double>("'<f8'", "2, 1, 1, 2", {1, -2, 3, 4}));
  write("a", npy<std::int32_t>("'<i4'", "1, 1, 1, 2", {-5, 6}));
  const DataSets numbers = load();
  EXPECT_EQ(numbers.shape, (Shape1{1, 1, 2}));
  EXPECT_TRUE(numbers.train.inputs.equal(at::tensor(Floats{1, -2, 3, 4}).view({2, 2})));
  EXPECT_TRUE(numbers.test.inputs.equal(at::tensor(Floats{-5, 6}).view({1, 2})));
}

TEST_F(ArrayFolder, ManyNumbersAreReadInParts) {
  std::vector<double> many(600'000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i);
  write("x", npy("'<f8'", "2, 300000", many));
  write("a", npy("'<f8'", "1, 600000", many));
  EXPECT_THROW(load(), UsageError);
  write("a", npy("'<f8'", "2, 300000", many));
  write("b", npy<std::int64_t>("'<i8'", "2,", {1, 0}));
  EXPECT_EQ(load().test.inputs[1][299'999].item<float>(), 599'999);
  many[599'998] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(fault_of("x", npy("'<f8'", "2, 300000", many)),
            "x has inf in row 1 | inputs and values are finite, classes begin at 0");
}

TEST_F(ArrayFolder, NamesTheFileThatCannotBeUsed) {
  const std::string right = npy<float>("'<f4'", "2, 2", {1, 2, 3, 4});
  EXPECT_EQ(fault_of("x", right), "none");
  EXPECT_EQ(fault_of("x", "\x93NUMPX\x01 0123456789"),
            "x is no array of NumPy's | numpy.save writes arrays");
  EXPECT_EQ(fault_of("x", ""), "x is cut short, or no array of NumPy's | numpy.save writes arrays");
  EXPECT_EQ(fault_of("x", right.substr(0, right.size() - 1)),
            "x is cut short, or no array of NumPy's | numpy.save writes arrays");
  EXPECT_EQ(fault_of("x", npy<float>("'<f4'", "2, 2000000000", {1})),
            "x is shorter than it says | ");
  const std::string types =
      "save array.astype(\"float32\"), or \"uint8\" for pictures, \"int64\" for classes";
  EXPECT_EQ(fault_of("x", npy<float>("'>f4'", "2, 2", {1, 2, 3, 4})),
            "x holds numbers of type >f4 | " + types);
  EXPECT_EQ(fault_of("x", npy<float>("[('a', '<f4')]", "2, 2", {1, 2, 3, 4})),
            "x holds numbers of type object | " + types);
  const std::string sides = "its first side is that of the samples";
  for (const std::string shape : {"", "2, 0", "-1, 2", "2 2, x", "9223372036854775807, 9"}) {
    std::string blanks = shape;
    std::erase(blanks, ' ');
    EXPECT_EQ(fault_of("x", npy<float>("'<f4'", shape, {1, 2, 3, 4})),
              "x has the shape (" + blanks + ") | " + sides);
  }
  std::string fortran = right;
  fortran.replace(fortran.find("False"), 5, "True ");
  EXPECT_EQ(fault_of("x", fortran),
            "x has its columns one after another | save numpy.ascontiguousarray(array)");
  EXPECT_EQ(fault_of("x", npy<float>("'<f4'", "1, 1, 1, 2, 2", {1, 2, 3, 4})),
            "x has the shape (1, 1, 1, 2, 2) | a sample is [values], [rows, columns] or "
            "[channels, rows, columns]");
}

TEST_F(ArrayFolder, NamesWhatDoesNotFitTogether) {
  EXPECT_EQ(fault_of("y", npy<std::int64_t>("'<i8'", "3,", {0, 1, 2})),
            "y has 3 rows for 2 samples | ");
  EXPECT_EQ(fault_of("y", npy<float>("'<f4'", "2,", {0, 1})),
            "y has no whole number for each sample | save array.astype(\"int64\")");
  EXPECT_EQ(fault_of("y", npy<std::int64_t>("'<i8'", "2, 2", {0, 1, 2, 3})),
            "y has no whole number for each sample | save array.astype(\"int64\")");
  EXPECT_EQ(fault_of("y", npy<std::int64_t>("'<i8'", "2,", {0, -1})),
            "y has -1 in row 1 | inputs and values are finite, classes begin at 0");
  EXPECT_EQ(fault_of("b", npy<std::int64_t>("'<i8'", "1,", {3})),
            "b has a class above 2, the training's highest | ");
  EXPECT_EQ(fault_of("a", npy<float>("'<f4'", "1, 3", {1, 2, 3})),
            "a has another shape or type than that of the training | ");
  EXPECT_EQ(fault_of("a", npy<std::uint8_t>("'|u1'", "1, 2", {1, 2})),
            "a has another shape or type than that of the training | ");
  EXPECT_EQ(fault_of("b", npy<float>("'<f4'", "1, 2", {1, 2}), TargetKind::values),
            "b has another shape or type than that of the training | ");
}

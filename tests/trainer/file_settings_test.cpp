// SPDX-License-Identifier: MIT
// The keys of files in [data], and the examples of their page.
#include "trainer/data/data_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/trainer/experiment_text.h"
#include "trainer/settings/usage_error.h"
#include "trainer/supervised/supervised_settings.h"

using namespace dtool::trainer;

namespace {

DataSettings data_in(const std::string& text) {
  const auto experiment = experiment_of(text, "file_settings.toml");
  return dynamic_cast<const SupervisedSettings&>(*experiment.own).data;
}

/// The page's examples in its order.
std::vector<std::string> examples(const char* page) {
  std::ifstream stream(std::filesystem::path(DTOOL_SOURCE_DIR) / "docs" / page);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::vector<std::string> found;
  const std::string fence = "```toml\n";
  for (auto at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    at += fence.size();
    found.push_back(text.substr(at, text.find("```", at) - at));
  }
  return found;
}

std::string mistake(const std::string& lines) {
  try {
    data_in("workload = 'classifier'\n" + lines);
  } catch (const UsageError& problem) {
    return line_and_fault(problem);
  }
  return "no mistake";
}

}  // namespace

TEST(FileSettings, TheDocumentationsExamplesSayWhatTheirTextSays) {
  const auto texts = examples("data.md");
  ASSERT_EQ(texts.size(), 4U);

  const auto copied = data_in(texts[0]);
  EXPECT_EQ(copied.source, DataSource::mnist);
  EXPECT_EQ(copied.files.place.path, "/shared/data/mnist");
  EXPECT_EQ(copied.files.place.copy_to, "$TMPDIR/mnist");
  EXPECT_EQ(copied.files.place.mirrors.urls.size(), 2U);
  EXPECT_EQ(copied.files.files.size(), 4U);

  const auto images = data_in(texts[1]);
  EXPECT_EQ(images.source, DataSource::idx);
  EXPECT_EQ(images.files.files[2].wanted.name, "t10k-images-idx3-ubyte.gz");
  EXPECT_EQ(images.files.files[2].wanted.sha256.substr(0, 8), "346e55b9");
  EXPECT_EQ(images.files.files[2].compared, Compared::always);

  const auto table = data_in(texts[2]).files;
  EXPECT_EQ(table.csv.targets, std::vector<std::string>{"price"});
  EXPECT_EQ(table.csv.standardise, Standardise::yes);
  EXPECT_EQ(table.csv.test_share, 0.2);
  EXPECT_EQ(table.csv.split_seed, 7U);
  EXPECT_EQ(table.targets, TargetKind::values);
  EXPECT_EQ(table.files.size(), 1U);

  const auto function = data_in(texts[3]);
  EXPECT_EQ(function.source, DataSource::python);
  EXPECT_EQ(function.iterator, "my_data:batches");
}

TEST(FileSettings, ArraysAreTwoFilesForEachSetOrOne) {
  const auto names = [](const std::string& workload, const std::string& lines) {
    std::string all;
    for (const auto& each :
         data_in("workload = '" + workload + "'\n[data]\nsource = 'npy'\n" + lines).files.files) {
      all += each.wanted.name + " ";
    }
    return all;
  };
  EXPECT_EQ(names("regression", ""), "x_train.npy y_train.npy x_test.npy y_test.npy ");
  EXPECT_EQ(names("classifier", "test_targets = 'c.npy'\ntrain_inputs = 'a.npy.gz'\n"),
            "a.npy.gz y_train.npy x_test.npy c.npy ");
  EXPECT_EQ(names("autoencoder", ""), "x_train.npy x_test.npy ");
  const auto python = data_in(
      "workload = 'autoencoder'\n[data]\nsource = 'python'\niterator = 'my_data:batches'\n");
  EXPECT_EQ(python.iterator, "my_data:batches");
  EXPECT_EQ(python.python, "python3");
  EXPECT_EQ(python.files.targets, TargetKind::none);
  EXPECT_EQ(mistake("[data]\nsource = 'python'\n"), ": data.iterator is missing");
  EXPECT_EQ(mistake("[data]\nsource = 'python'\niterator = 'a:b'\npath = 'c'\n"),
            ":5: data.path is only for data.source = \"mnist\", \"idx\", \"csv\" or \"npy\"");
  EXPECT_EQ(mistake("[data]\nsource = 'npy'\npython = 'c'\n"),
            ":4: data.python is only for data.source = \"python\"");
}

TEST(FileSettings, WhatATablesTargetsAreDependsOnTheModel) {
  const std::string table = "[data]\nsource = 'csv'\ntrain_file = 'a.csv'\n";
  EXPECT_EQ(data_in("workload = 'classifier'\n" + table).files.targets, TargetKind::classes);
  EXPECT_EQ(data_in("workload = 'regression'\n" + table).files.targets, TargetKind::values);
  EXPECT_EQ(data_in("workload = 'autoencoder'\n" + table).files.targets, TargetKind::none);
}

TEST(FileSettings, WithoutDownloadNobodyIsAsked) {
  EXPECT_TRUE(data_in("workload = 'classifier'\n[data]\nsource = 'mnist'\ndownload = false\n")
                  .files.place.mirrors.urls.empty());
}

TEST(FileSettings, MnistsFolderIsTheVariablesElseOneOfTheUsers) {
  const std::string text = "workload = 'classifier'\n[data]\nsource = 'mnist'\n";
  const char* before = std::getenv("DTOOL_MNIST_DIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("DTOOL_MNIST_DIR", "/some/where", 1);
  EXPECT_EQ(data_in(text).files.place.path, "/some/where");
  unsetenv("DTOOL_MNIST_DIR");
  EXPECT_EQ(data_in(text).files.place.path, "~/.dtool/data/mnist");
  if (before != nullptr) setenv("DTOOL_MNIST_DIR", kept.c_str(), 1);
}

TEST(FileSettings, AKeyOfAnotherSourceIsRefused) {
  EXPECT_EQ(mistake("[data]\nsource = 'digits'\ncopy_to = 'x'\n"),
            ":4: data.copy_to is only for data.source = \"mnist\", \"idx\", \"csv\" or \"npy\"");
  EXPECT_EQ(mistake("[data]\nsource = 'digits'\nsha256 = []\n"),
            ":4: data.sha256 is only for data.source = \"idx\", \"csv\" or \"npy\"");
  EXPECT_EQ(mistake("[data]\nsource = 'mnist'\nsha256 = []\n"),
            ":4: data.sha256 is not for data.source = \"mnist\", which knows its own");
  EXPECT_EQ(mistake("[data]\nsource = 'mnist'\ntargets = ['a']\n"),
            ":4: data.targets is only for data.source = \"csv\"");
  EXPECT_EQ(mistake("[data]\nsource = 'csv'\ntrain_samples = 3\n"),
            ":4: data.train_samples is only for data that is drawn");
}

TEST(FileSettings, AFileThatIsFetchedOrCopiedHasAPlainName) {
  EXPECT_EQ(mistake("[data]\nsource = 'csv'\ntrain_file = '../a.csv'\ncopy_to = 'x'\n"),
            ": '../a.csv' is no plain name, which a file that is downloaded or copied has");
  EXPECT_EQ(mistake("[data]\nsource = 'csv'\ntrain_file = '/tables/a.csv'\n"), "no mistake");
}

TEST(FileSettings, AMirrorIsAnAddressAndNeedsChecksums) {
  const std::string table = "[data]\nsource = 'csv'\ntrain_file = 'a'\n";
  EXPECT_EQ(mistake(table + "mirrors = ['example.org/data']\n"),
            ":5: data.mirrors: 'example.org/data' is no address of a folder");
  EXPECT_EQ(mistake(table + "mirrors = ['-o/etc/passwd']\n"),
            ":5: data.mirrors: '-o/etc/passwd' is no address of a folder");
  EXPECT_EQ(mistake(table + "mirrors = ['https://example.org/data']\n"),
            ":5: data.mirrors needs data.sha256, with which what is downloaded is compared");
  EXPECT_EQ(mistake(table + "sha256 = ['" + std::string(64, 'A') + "']\n"),
            ":5: data.sha256: '" + std::string(64, 'A') + "' is not 64 hexadecimal digits 0-9 a-f");
  EXPECT_EQ(mistake(table + "mirrors = ['https://example.org/data']\nsha256 = ['" +
                    std::string(64, 'a') + "']\n"),
            "no mistake");
}

TEST(FileSettings, TheSeparatorIsOneCharacterAndTheHeaderThereOrNot) {
  const std::string table = "[data]\nsource = 'csv'\ntrain_file = 'a'\n";
  const auto format_of = [&](const std::string& lines) {
    return data_in("workload = 'classifier'\n" + table + lines).files.csv.format;
  };
  EXPECT_EQ(format_of("").separator, ',');
  EXPECT_EQ(format_of("").header, Header::present);
  EXPECT_EQ(format_of("separator = \"\\t\"\n").separator, '\t');
  EXPECT_EQ(format_of("header = false\n").header, Header::absent);
  const std::string refused =
      "data.separator is one character that is neither a quote nor the end of a line, not ";
  EXPECT_EQ(mistake(table + "separator = 'comma'\n"), ":5: " + refused + "'comma'");
  EXPECT_EQ(mistake(table + "separator = '\"'\n"), ":5: " + refused + "'\"'");
  EXPECT_EQ(mistake(table + "separator = ''\n"), ":5: " + refused + "''");
  EXPECT_EQ(mistake(table + "separator = '€'\n"), ":5: " + refused + "'€'");
  EXPECT_NE(mistake(table + "header = 'auto'\n").find(":5: data.header"), std::string::npos);
}

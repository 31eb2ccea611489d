// SPDX-License-Identifier: MIT
// A workload of tokens: it brings its samples, model and loss, and takes the rest from the
// supervised ones.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>

#include "tests/trainer/own_folder.h"
#include "tests/trainer/ranks.h"
#include "trainer/data/provide_data.h"
#include "trainer/settings/usage_error.h"
#include "trainer/supervised/objective.h"

using namespace dtool::trainer;

namespace {

constexpr std::int64_t kWords = 1000;  // more than a byte holds
constexpr std::int64_t kLength = 16;

std::int64_t next_word(std::int64_t word) {
  return (word * 3 + 1) % kWords;
}

/// Sentences [samples, kLength] in which each word has one successor; the targets are the same
/// sentences a word later.
DataSet sentences(std::int64_t samples, std::int64_t first, const SampleMemory& memory) {
  DataSet set{empty_in(memory, {samples, kLength}, at::kLong),
              empty_in(memory, {samples, kLength}, at::kLong)};
  for (std::int64_t i = 0; i < samples; ++i) {
    std::int64_t word = (first + i) % kWords;
    for (std::int64_t j = 0; j < kLength; ++j) {
      set.inputs.data_ptr<std::int64_t>()[i * kLength + j] = word;
      word = next_word(word);
      set.targets.data_ptr<std::int64_t>()[i * kLength + j] = word;
    }
  }
  return set;
}

/// Which word follows which: logits [batch, kLength, kWords].
struct Bigrams : Model {
  std::vector<NamedTensor> parameters() const override { return {{"table", table}}; }
  std::vector<NamedTensor> buffers() const override { return {}; }
  at::Tensor forward(const at::Tensor& words) override { return at::embedding(table, words); }
  void set_mode(Mode) override {}
  RandomNumbers random_numbers() const override { return RandomNumbers::none; }

  at::Tensor table = at::zeros({kWords, kWords}).requires_grad_(true);
};

struct NextWord : Objective {
  using Objective::Objective;
  at::Tensor loss(const Batch& batch, const at::Tensor&) override {
    const at::Tensor logits = model().forward(batch.inputs);
    return at::cross_entropy_loss(logits.view({-1, kWords}), batch.targets.view(-1));
  }
};

class Tokens : public OwnFolder {
 protected:
  Tokens() {
    experiment_.checkpoint = {1, 0, 2, true};
    experiment_.distributed.collective_timeout = std::chrono::seconds(60);
    experiment_.optimizer = {OptimizerKind::adam, 0.5, {}, 0.9, 0.999, 1e-8, 0, 0, true, 0};
    options_.output_dir = folder_;
    training_.train.stages = {{5, 0, 50, 1, 1, 0.5}};
    training_.train.batch_per = BatchPer::rank;
    training_.train.evaluate_every = 1;
    training_.train.cuda_graph = {CudaGraph::off, "train.cuda_graph"};
  }

  /// What the log has of the last epoch.
  std::string last_epoch() const {
    std::ifstream file(folder_ / "metrics.jsonl");
    std::string line, last;
    while (std::getline(file, line)) {
      if (line.find("\"epoch\"") != line.npos && line.find("test_loss") != line.npos) last = line;
    }
    return last;
  }

  Experiment experiment_;
  CommandLine options_;
  SampleTraining training_;
};

}  // namespace

TEST_F(Tokens, AreLearnedOnTwoRanksThroughAnObjectiveOfTheirOwn) {
  std::vector<at::Tensor> tables(2);
  testing::internal::CaptureStdout();
  on_every_rank(2, Machines::one, [&](const Meeting& meeting) {
    const Group group = make_group(meeting, Backend::gloo, std::chrono::seconds(60));
    DataSets data = load_on_machine(
        [](const SampleMemory& memory) {
          return DataSets{sentences(1000, 0, memory), sentences(100, 7, memory), {kLength}, kWords};
        },
        meeting, at::kCPU);
    auto model = std::make_unique<Bigrams>();
    const at::Tensor table = model->table;
    NextWord objective(std::move(model), std::move(data));
    train_on_samples({experiment_, options_, meeting, group}, training_, objective);
    tables[static_cast<std::size_t>(meeting.place.rank)] = table.detach();
  });
  testing::internal::GetCapturedStdout();
  EXPECT_TRUE(tables[0].equal(tables[1]));
  std::int64_t right = 0;
  for (std::int64_t word = 0; word < kWords; ++word) {
    right += tables[0][word].argmax().item<std::int64_t>() == next_word(word) ? 1 : 0;
  }
  EXPECT_EQ(right, kWords);
  const std::string line = last_epoch();
  const auto at = line.find("\"test_loss\": ");
  ASSERT_NE(at, line.npos) << line;
  EXPECT_LT(std::stod(line.substr(at + 13)), 0.1 * std::log(kWords));
}

TEST_F(Tokens, OfMachinesThatDifferAreRefused) {
  on_every_rank(2, Machines::one_a_rank, [&](const Meeting& meeting) {
    const Group group = make_group(meeting, Backend::gloo, std::chrono::seconds(60));
    DataSets data = load_on_machine(
        [&](const SampleMemory& memory) {
          return DataSets{
              sentences(100 + group.rank, 0, memory), sentences(10, 0, memory), {kLength}, kWords};
        },
        meeting, at::kCPU);
    NextWord objective(std::make_unique<Bigrams>(), std::move(data));
    EXPECT_THROW(train_on_samples({experiment_, options_, meeting, group}, training_, objective),
                 UsageError);
  });
}

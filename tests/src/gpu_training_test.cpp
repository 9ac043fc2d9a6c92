// Training through everything of the CUDA side but the driver and the kernels: streams, events,
// unified memory, copies and the profiler of a CudaDevice, over a driver that only takes notes,
// with the host's kernels. The driver is told what each of them uses, and finds what has no order.

#include "tests/src/gpu_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"
#include "src/host/host_backend.h"
#include "src/io/data/batch_loader.h"
#include "src/io/data/synthetic.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/profile/measured_profile.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "tests/refusal.h"
#include "tests/um/cuda/late_gpu.h"
#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"
#include "um/host/host_device.h"

namespace spillway {
namespace {

using um::Bytes;
using namespace test;  // the trainings

TEST(GpuTraining, GivesTheHostsBitsInEveryMode) {
  const auto expected = train(this_machine(), MemoryMode::kResident).numbers();
  for (const MemoryMode mode : {MemoryMode::kResident, MemoryMode::kManaged, MemoryMode::kCopy}) {
    for (const char* planner : {"joint", "capacity"}) {
      const Trained trained =
          train(recorded_gpu(um::RecordingApi::h200()), mode, {.planner = planner});
      EXPECT_EQ(trained.numbers(), expected) << to_string(mode) << ' ' << planner;
      EXPECT_TRUE(trained.kept_budget) << to_string(mode) << ' ' << planner;
      EXPECT_EQ(trained.counters.bytes_offloaded > Bytes{}, mode != MemoryMode::kResident);
    }
  }
}

TEST(GpuTraining, UpdatesALargeLayerInPartsWithTheHostsBits) {
  const Training in_parts{.network = network_with_large_layer};
  const auto expected = train(this_machine(), MemoryMode::kResident, in_parts).numbers();
  for (const MemoryMode mode : {MemoryMode::kResident, MemoryMode::kManaged, MemoryMode::kCopy}) {
    const Trained trained = train(recorded_gpu(um::RecordingApi::h200()), mode, in_parts);
    EXPECT_EQ(trained.numbers(), expected) << to_string(mode);
    EXPECT_TRUE(trained.kept_budget) << to_string(mode);
  }
}

// On the processor, over pinned memory and over pages that are in the host's memory.
TEST(GpuTraining, UpdatesOnTheFarSideWithTheHostsBits) {
  const auto expected =
      train(this_machine(), MemoryMode::kResident, {.network = network_with_large_layer}).numbers();
  for (const MemoryMode mode : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    for (const char* planner : {"joint", "capacity"}) {
      const Trained trained =
          train(recorded_gpu(um::RecordingApi::h200()), mode,
                {.planner = planner, .network = network_with_large_layer, .far_updates = true});
      EXPECT_GT(trained.far_updates, 1U) << to_string(mode) << ' ' << planner;
      EXPECT_EQ(trained.numbers(), expected) << to_string(mode) << ' ' << planner;
      EXPECT_TRUE(trained.kept_budget) << to_string(mode) << ' ' << planner;
    }
  }
}

TEST(GpuTraining, GivesTheSameBitsWithAndWithoutAGraph) {
  const auto expected = train(this_machine(), MemoryMode::kResident).numbers();
  for (const MemoryMode mode : {MemoryMode::kResident, MemoryMode::kCopy}) {
    for (const bool graph : {true, false}) {
      auto driver = std::make_unique<um::RecordingApi>(um::RecordingApi::h200());
      std::vector<std::string> log;
      driver->tell_launches([&] { log.emplace_back("launch"); });
      const Trained trained = train(recorded_gpu(std::move(driver)), mode, {.graph = graph});
      EXPECT_EQ(trained.numbers(), expected) << to_string(mode);
      EXPECT_EQ(log.size(), graph ? 2U : 0U) << to_string(mode);
      EXPECT_EQ(trained.joint_updates, graph ? 1 : 0) << to_string(mode);
    }
  }
}

TEST(GpuTraining, GoesOnWhereNoGraphCanBeMade) {
  const auto expected = train(this_machine(), MemoryMode::kResident).numbers();
  for (const MemoryMode mode : {MemoryMode::kResident, MemoryMode::kCopy}) {
    auto driver = std::make_unique<um::RecordingApi>(um::RecordingApi::h200());
    driver->fail("begin capture", cudaErrorStreamCaptureUnsupported);
    const Trained trained = train(recorded_gpu(std::move(driver)), mode);
    EXPECT_EQ(trained.numbers(), expected) << to_string(mode);
    ASSERT_EQ(trained.problems.size(), 1U) << to_string(mode);
    EXPECT_NE(trained.problems[0].find("no CUDA graph could be made"), std::string::npos);
  }
}

// Winograd's workspaces of 8 MiB are pages of the slab in the smallest budget.
TEST(GpuTraining, GivesTheSameBitsWhereverWorkspacesAre) {
  const Training winograd{.convolution = ConvolutionAlgorithm::kWinograd};
  const auto expected = train(this_machine(), MemoryMode::kResident, winograd).numbers();
  const auto expect = [&](Bytes room, const std::string& place) {
    Training managed = winograd;
    managed.room = room;
    const Trained trained =
        train(recorded_gpu(um::RecordingApi::h200()), MemoryMode::kManaged, managed);
    EXPECT_EQ(trained.numbers(), expected);
    EXPECT_TRUE(trained.kept_budget);
    EXPECT_NE(trained.memory.find(place), std::string::npos) << trained.memory;
  };
  expect({}, "workspaces in it");
  expect(Bytes{8ULL << 20U}, "workspaces beside it");
}

// The slab of any plan holds what a task needs at the same time: more than 2 MiB.
TEST(GpuTraining, RefusesUnifiedMemoryThatNoPlanFitsBeforeItMeasures) {
  Opened opened = recorded_gpu(um::RecordingApi::h200(), {.managed_limit = Bytes{2U << 20U}});
  ExecutionContext& context = opened.context;
  const nets::Network net = network_of_blocks();
  const Workload workload{net, *context.backend, {.batch = kBatch}};
  bool has_measured = false;
  const auto measure = [&](MemoryMode mode) {
    return measure_profile(context, workload, workload.need().resident, mode, {}, {},
                           [&](double) { has_measured = true; });
  };
  const std::string sentence = test::refusal([&] { return measure(MemoryMode::kManaged); });
  EXPECT_NE(sentence.find("more than the limit of 2.00 MiB"), std::string::npos) << sentence;
  EXPECT_FALSE(has_measured);
  static_cast<void>(measure(MemoryMode::kCopy));
  EXPECT_TRUE(has_measured);
}

TEST(GpuTraining, StagesItsBatchesInPinnedMemory) {
  auto api = std::make_unique<um::RecordingApi>();
  um::RecordingApi& driver = *api;
  Opened opened = recorded_gpu(std::move(api));
  ExecutionContext& context = opened.context;
  const nets::Network net = network_of_blocks();
  const Workload workload{net, *context.backend, {.batch = kBatch}};
  const Plans plans = make_plans(
      workload, prefetch::model_profile(workload.training().graph, prefetch::find_machine("host")),
      2 * workload.need().peak_with_workspace, {.memory = MemoryMode::kResident});
  static_cast<void>(driver.take_log());
  Session session{context, workload, plans, MemoryMode::kResident, {}};
  session.state().initialise(1);
  const DatasetPair data{
      .train = std::make_unique<SyntheticDataset>(kImage, kClasses, 4 * kBatch, 1, Split::kTrain),
      .test = std::make_unique<SyntheticDataset>(kImage, kClasses, kBatch, 1, Split::kTest)};
  train(session, data, {.steps = 2},
        {.on_step = [](auto, auto, const auto&) {},
         .on_evaluation = [](auto, auto, const auto&) { return AfterEvaluation::kGoOn; },
         .on_checkpoint = [](auto) {}});
  // 16 images of 3 x 32 x 32 floats and their labels, once; the loader's are in ordinary memory.
  const std::vector<std::string> log = driver.take_log();
  EXPECT_EQ(std::ranges::count(log, "allocate pinned 192 KiB"), 1);
  EXPECT_EQ(std::ranges::count_if(
                log, [](const auto& line) { return line.starts_with("allocate pinned"); }),
            1);
}

// As with a driver older than CUDA 13.
TEST(GpuTraining, NeedsNoDiscards) {
  um::CudaFacts facts = um::RecordingApi::h200();
  facts.has_discard = false;
  EXPECT_EQ(train(recorded_gpu(facts), MemoryMode::kManaged).numbers(),
            train(this_machine(), MemoryMode::kResident).numbers());
}

// As on WSL, Windows and Jetson: no hints, but copies, and profiles of them.
TEST(GpuTraining, CopiesWhereUnifiedMemoryCannotBeMovedByHints) {
  um::CudaFacts facts = um::RecordingApi::h200();
  facts.has_concurrent_managed_access = false;
  EXPECT_EQ(train(recorded_gpu(facts), MemoryMode::kCopy).numbers(),
            train(this_machine(), MemoryMode::kResident).numbers());
  const std::string sentence =
      test::refusal([&] { return train(recorded_gpu(facts), MemoryMode::kManaged); });
  EXPECT_NE(sentence.find("use --memory copy"), std::string::npos) << sentence;
}

TEST(GpuTraining, RefusesMoreUnifiedMemoryThanItsLimit) {
  const std::string sentence = test::refusal([&] {
    return train(recorded_gpu(um::RecordingApi::h200(), {.managed_limit = Bytes{4ULL << 20U}}),
                 MemoryMode::kManaged);
  });
  EXPECT_NE(sentence.find("limit of 4.00 MiB"), std::string::npos) << sentence;
}

}  // namespace
}  // namespace spillway

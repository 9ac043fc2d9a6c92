// Training through everything of the CUDA side but the driver and the kernels: streams, events,
// unified memory, copies and the profiler of a CudaDevice, over a driver that only takes notes,
// with the host's kernels. The driver is told what each of them uses, and finds what has no order.

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
#include "src/data/batch_loader.h"
#include "src/data/synthetic.h"
#include "src/host/host_context.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/profile/measured_profile.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "tests/refusal.h"
#include "tests/src/gpu_like_backend.h"
#include "tests/um/cuda/late_gpu.h"
#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"
#include "um/host/host_device.h"

namespace spillway {
namespace {

using um::Bytes;

constexpr nets::Shape kImage{.channels = 3, .height = 32, .width = 32};
constexpr std::size_t kClasses = 3;
constexpr std::size_t kBatch = 16;

// A machine, and what a test does with its driver where that is recorded.
struct Opened {
  ExecutionContext context;
  um::RecordedGpu* gpu = nullptr;
  GpuLikeBackend* backend = nullptr;
};

Opened recorded_gpu(std::unique_ptr<um::RecordingApi> driver, const um::CudaOptions& options = {}) {
  um::RecordedGpu& gpu = *driver;
  auto device = std::make_unique<um::CudaDevice>(std::move(driver), options);
  auto compute = device->make_cuda_stream("compute");
  auto backend = std::make_unique<GpuLikeBackend>(device->batch_memory(), gpu, compute->native());
  compute->enqueue([&] { backend->start_threads(); });
  compute->synchronize();
  Opened opened{.context = {}, .gpu = &gpu, .backend = backend.get()};
  opened.context.device = std::move(device);
  opened.context.compute = std::move(compute);
  opened.context.backend = std::move(backend);
  return opened;
}

Opened recorded_gpu(const um::CudaFacts& facts, const um::CudaOptions& options = {}) {
  return recorded_gpu(std::make_unique<um::RecordingApi>(facts), options);
}

Opened this_machine() {
  return {.context = host::open_context(std::make_unique<um::HostDevice>(), 1)};
}

// Blocks of 1 to 4 MiB: some of them move.
nets::Network network_of_blocks() {
  nets::Builder net{"three", kImage};
  nets::NodeId x = net.input();
  for (int i = 1; i <= 3; ++i) {
    const std::string number = std::to_string(i);
    x = net.convolution("conv" + number, x,
                        {.channels = 32, .kernel = nets::square(3), .padding = nets::square(1)});
    x = net.relu("relu" + number, net.batch_norm("norm" + number, x));
  }
  return net.build(net.linear("fc", net.global_average_pool("mean", x), {.features = kClasses}));
}

// Its linear layer "fc6" has 2.5 MiB of weights.
nets::Network network_with_large_layer() {
  nets::Builder net{"large layer", kImage};
  const nets::NodeId x = net.convolution("conv", net.input(), {.channels = 40});
  return net.build(
      net.linear("fc7", net.linear("fc6", x, {.features = 16}), {.features = kClasses}));
}

// What a training gave.
struct Trained {
  std::vector<float> losses;
  std::vector<std::string> problems;
  std::ptrdiff_t joint_updates = 0;  // launches given, or kept in a graph
  std::string weights;
  um::Counters counters;
  bool kept_budget = true;
  std::string memory;  // in words

  [[nodiscard]] auto numbers() const { return std::pair{losses, weights}; }
};

struct Training {
  std::string planner = "joint";
  Bytes room;  // beside the smallest budget
  ConvolutionAlgorithm convolution = ConvolutionAlgorithm::kDirect;
  bool graph = true;
  nets::Network (*network)() = network_of_blocks;
};

// Measures, plans the smallest budget and `room` more, and trains four steps; a recorded GPU does
// nothing of them before it must. With `graph`, the last two are captured where they can be.
Trained train(Opened opened, MemoryMode mode, const Training& training = {}) {
  ExecutionContext& context = opened.context;
  const nets::Network net = training.network();
  const Workload workload{
      net,
      *context.backend,
      {.batch = kBatch, .convolution = training.convolution, .largest_update = Bytes{600U << 10U}}};
  const Bytes budget = training.room + (mode == MemoryMode::kResident ? workload.need().resident
                                                                      : workload.need().smallest);
  if (opened.backend != nullptr) opened.backend->declare(workload.training());
  const prefetch::Profile profile =
      measure_profile(context, workload, budget, mode, {}, {}, [](double) {});
  const Plans plans = make_plans(workload, profile, budget,
                                 {.memory = mode,
                                  .planner = &prefetch::find_planner(training.planner),
                                  .may_recompute = false});
  Session session{context, workload, plans, mode, {.gpu = {.graph = training.graph}}};
  session.state().initialise(1);
  const SyntheticDataset data{kImage, kClasses, 3 * kBatch, 1, Split::kTrain};
  BatchLoader loader{data, kBatch, 1, 0, BatchLoader::kUsualDepth, session.batch_memory()};
  std::optional<um::LateGpu> late;
  if (opened.gpu != nullptr) late.emplace(*opened.gpu, 1);
  Trained trained{.memory = session.memory_description()};
  for (std::uint64_t step = 0; step < 4; ++step) {
    const Batch& batch = loader.next();
    const StepReport report = session.train({.seed = 1,
                                             .step = step,
                                             .learning_rate = 0.01F,
                                             .batch = &batch,
                                             .next_batch = loader.peek()});
    trained.losses.push_back(report.loss);
    if (!report.problem.empty()) trained.problems.push_back(report.problem);
    trained.counters += report.counters;
    trained.kept_budget = trained.kept_budget && report.near_peak <= budget;
  }
  session.settle();
  if (opened.gpu != nullptr) {
    trained.joint_updates = std::ranges::count(opened.gpu->take_log(), "compute: updates");
  }
  trained.weights = session.state().sha256();
  return trained;
}

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
         .on_evaluation = [](auto, auto, const auto&) {},
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

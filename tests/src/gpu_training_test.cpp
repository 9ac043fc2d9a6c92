// Training through everything of the CUDA side but the driver and the kernels: streams, events,
// unified memory, copies and the profiler of a CudaDevice, over a driver that only takes notes,
// with the host's kernels. The driver is told what each of them uses, and finds what has no order.
#include "tests/src/gpu_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "nets/families/published_networks.h"
#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"
#include "src/bench/link/transfer.h"
#include "src/host/host_backend.h"
#include "src/io/data/batch_loader.h"
#include "src/io/data/synthetic.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/run/executor.h"
#include "src/run/loaded_link.h"
#include "src/run/measured_profile.h"
#include "src/train/next_token_model.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "tests/refusal.h"
#include "tests/sleeping_threads.h"
#include "tests/src/gpu_like_backend.h"
#include "tests/src/network_in_memory.h"
#include "tests/src/small_training.h"
#include "tests/um/cuda/late_gpu.h"
#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"
#include "um/host/host_device.h"

namespace spillway {
namespace {

using um::Bytes;
using namespace test;  // the trainings

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

// Workspaces of 8 MiB are pages of the slab in the smallest budget.
TEST(GpuTraining, GivesTheSameBitsWhereverWorkspacesAre) {
  const auto expected = train(this_machine(), MemoryMode::kResident).numbers();
  const auto expect = [&](Bytes room, const std::string& place) {
    const Trained trained = train(recorded_gpu(um::RecordingApi::h200()), MemoryMode::kManaged,
                                  {.room = room, .workspace = Bytes{8ULL << 20U}});
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
    return measure_profile(context,
                           {.workload = workload,
                            .limit = workload.need().resident,
                            .mode = mode,
                            .space = {},
                            .with_link = mode != MemoryMode::kResident},
                           {}, [&](double) { has_measured = true; });
  };
  const std::string sentence = test::refusal([&] { return measure(MemoryMode::kManaged); });
  EXPECT_NE(sentence.find("more than the limit of 2.00 MiB"), std::string::npos) << sentence;
  EXPECT_FALSE(has_measured);
  static_cast<void>(measure(MemoryMode::kCopy));
  EXPECT_TRUE(has_measured);
}

// Resident training; the driver of its GPU takes notes from the making of the session on.
class GpuBatches : public ::testing::Test {
 protected:
  GpuBatches() {
    static_cast<void>(driver_.take_log());
    session_.emplace(opened_.context, workload_, plans_, MemoryMode::kResident,
                     um::ManagedOptions{});
    session_->state().initialise(1);
  }
  [[nodiscard]] static std::ptrdiff_t count(const std::vector<std::string>& log,
                                            const std::string& beginning) {
    return std::ranges::count_if(
        log, [&](const std::string& line) { return line.starts_with(beginning); });
  }

  std::unique_ptr<um::RecordingApi> api_ = std::make_unique<um::RecordingApi>();
  um::RecordingApi& driver_ = *api_;
  Opened opened_ = recorded_gpu(std::move(api_));
  const nets::Network net_ = network_of_blocks();
  const Workload workload_{net_, *opened_.context.backend, {.batch = kBatch}};
  const Plans plans_ = make_plans(
      workload_,
      prefetch::model_profile(workload_.training().graph, prefetch::find_machine("host")),
      2 * workload_.need().peak_with_workspace, {.memory = MemoryMode::kResident});
  std::optional<Session> session_;
};

TEST_F(GpuBatches, AreStagedInPinnedMemory) {
  const DatasetPair data{
      .train = std::make_unique<SyntheticDataset>(kImage, kClasses, 4 * kBatch, 1, Split::kTrain),
      .test = std::make_unique<SyntheticDataset>(kImage, kClasses, kBatch, 1, Split::kTest)};
  train(*session_, data, {.steps = 2},
        {.on_step = [](auto, auto, const auto&) {},
         .on_evaluation = [](auto, auto, const auto&) { return AfterEvaluation::kGoOn; },
         .on_checkpoint = [](auto) {}});
  // 16 images of 3 x 32 x 32 floats and their labels, once; the loader's are in ordinary memory.
  const std::vector<std::string> log = driver_.take_log();
  EXPECT_EQ(std::ranges::count(log, "allocate pinned 192 KiB"), 1);
  EXPECT_EQ(count(log, "allocate pinned"), 1);
}

TEST_F(GpuBatches, ComeDuringTheStepBefore) {
  Batch now = drawn_batch(net_, kBatch, 0);
  Batch next = drawn_batch(net_, kBatch, 1);
  now.number = 1;
  next.number = 2;
  static_cast<void>(driver_.take_log());
  session_->train({.batch = &now, .next_batch = &next});
  session_->settle();
  EXPECT_EQ(count(driver_.take_log(), "upload: copy"), 2);
}

TEST(GpuTraining, RefusesMoreUnifiedMemoryThanItsLimit) {
  const std::string sentence = test::refusal([&] {
    return train(recorded_gpu(um::RecordingApi::h200(), {.managed_limit = Bytes{4ULL << 20U}}),
                 MemoryMode::kManaged);
  });
  EXPECT_NE(sentence.find("limit of 4.00 MiB"), std::string::npos) << sentence;
}

// Nothing is run in it.
class NoMemory final : public prefetch::StepMemory {
 public:
  void begin_step() override {}
  void begin_run(prefetch::Position /*position*/) override {}
  [[nodiscard]] std::byte* address(prefetch::DataId /*id*/) const override { return nullptr; }
  [[nodiscard]] std::byte* workspace() const override { return nullptr; }
  void after_launch(prefetch::Position /*position*/) override {}
  void end_run(prefetch::Position /*position*/) override {}
  void fail(std::exception_ptr /*error*/) override {}
  void end_step() override {}
  [[nodiscard]] prefetch::Timeline moves() const override { return {}; }
};

// The stream's thread gets to the kernels only when everybody waits for it.
TEST(GpuExecutor, HasItsKernelsWhenItHasBeenMade) {
  auto api = std::make_unique<um::RecordingApi>();
  um::RecordedGpu& gpu = *api;
  um::CudaDevice device{std::move(api), {}};
  const auto compute = device.make_cuda_stream("compute");
  const GpuLikeBackend backend{device.batch_memory(), gpu, compute->native()};
  const Step step = make_training_step(test::small_network(), backend, {.batch = 2});
  const prefetch::Plan plan{.runs = prefetch::runs_in_order(step.graph)};
  NoMemory memory;
  compute->enqueue([&] {
    backend.start_threads();
    while (!test::all_others_sleep()) std::this_thread::yield();
  });
  const Executor executor{step, plan, backend, memory, *compute, {}};
  EXPECT_EQ(backend.prepared(), step.launches.size());
}

using namespace um::literals;

// Near memory is made beside the streams of the moves, which do not wait for it.
TEST(GpuLinkOrder, TheFirstMoveComesAfterTheRoomForIt) {
  um::CudaDevice device{std::make_unique<um::RecordingApi>(), {}};
  const auto link = make_link_under_test(device, MemoryMode::kManaged, {.page = 2_MiB}, 4_MiB);
  const LinkUnderTest::Part first{.offset = 0_B, .size = 2_MiB};
  const LinkUnderTest::Part second{.offset = 2_MiB, .size = 2_MiB};
  link->move_away(first);
  link->exchange(second, first);
  link->move_back(second);
}

TEST(GpuLinkOrder, AHalfThatIsPutFarHasBeenNear) {
  um::CudaDevice device{std::make_unique<um::RecordingApi>(), {}};
  ManagedHalves halves{device, 4_MiB, 1, {}};
  halves.put_far(0);
  halves.put_near(1);
  halves.drop(1);
  halves.put_near(0);
}

constexpr std::size_t kWords = 23;

nets::Network gpt_of(const nets::Shape& text, std::size_t vocabulary) {
  return nets::gpt("tiny", {.layers = 1, .heads = 2, .width = 16, .context = 40}, text, vocabulary);
}

// Of two texts in the shorter step and two in the longer one: kernels that are not declared to the
// driver are in no graph that it repeats from the third on.
std::vector<std::vector<float>> logits_on(Opened opened) {
  NextTokenModel model{opened.context,
                       {.name = "tiny",
                        .description = {},
                        .image = nets::tokens(40),
                        .classes = kWords,
                        .build = gpt_of}};
  model.state().initialise(3);
  std::vector<std::vector<float>> all;
  for (const std::size_t length : {3U, 7U, 20U, 18U}) {
    std::vector<std::int32_t> text(length);
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<std::int32_t>(i * i % kWords);
    const std::span<const float> logits = model.logits(text);
    all.emplace_back(logits.begin(), logits.end());
  }
  return all;
}

TEST(GpuSampling, HasTheLogitsOfTheHost) {
  EXPECT_EQ(logits_on(recorded_gpu(um::CudaFacts{})), logits_on(this_machine()));
}

}  // namespace
}  // namespace spillway

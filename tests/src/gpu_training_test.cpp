// Training through everything of the CUDA side but the driver and the kernels: streams, events,
// unified memory, copies and the profiler of a CudaDevice, over a driver that only takes notes,
// with the host's kernels. The driver is told what each of them uses, and finds what has no order.
#include "tests/src/gpu_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "nets/families/published_networks.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/planners/catalogue.h"
#include "src/bench/link/transfer.h"
#include "src/host/host_backend.h"
#include "src/io/data/batch_loader.h"
#include "src/io/data/synthetic.h"
#include "src/ops/narrow_floats.h"
#include "src/plan/plan_question.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/run/batch_stage.h"
#include "src/run/executor.h"
#include "src/run/loaded_link.h"
#include "src/run/measured_profile.h"
#include "src/train/next_token_model.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "src/train/trainer.h"
#include "tests/refusal.h"
#include "tests/sleeping_threads.h"
#include "tests/src/byte_dataset.h"
#include "tests/src/gpu_like_backend.h"
#include "tests/src/network_in_memory.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"
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
  const Plans plans_ = answer({.steps = workload_,
                               .profile = prefetch::model_profile(workload_.training().graph,
                                                                  prefetch::find_machine("host")),
                               .budget = 2 * workload_.need().peak_with_workspace,
                               .request = {.memory = MemoryMode::kResident}})
                           .plans;
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

constexpr TensorShape kShape{2, {1, 32, 32}};

// Batches on their way to a GPU, whose step does nothing but load them.
class GpuBatchStage : public ::testing::Test {
 protected:
  GpuBatchStage() {
    auto api = std::make_unique<um::RecordingApi>();
    gpu_ = api.get();
    auto device = std::make_unique<um::CudaDevice>(std::move(api), um::CudaOptions{});
    auto compute = device->make_cuda_stream("compute");
    compute_ = compute->native();
    context_.backend = std::make_unique<GpuLikeBackend>(device->batch_memory(), *gpu_, compute_);
    context_.device = std::move(device);
    context_.compute = std::move(compute);
    stage_.emplace(context_, context_.backend->staged_bytes(load_), context_.device->memory());
    step_.graph.add(prefetch::DataBlock{.name = "staged", .kind = prefetch::DataKind::kState});
    step_.staged = prefetch::DataId{0};
  }

  static Batch batch(std::uint64_t number, float value) {
    Batch batch;
    batch.number = number;
    batch.images.assign(kShape.elements(), value);
    batch.labels.assign(kShape.batch, 1);
    return batch;
  }
  [[nodiscard]] BatchSamples samples(const Batch* batch) const {
    return {.load = load_, .batch = batch};
  }

  // A step; returns the first number of the images that it finds.
  float run(const Batch& now, const Batch* next = nullptr) {
    stage_->expect(samples(&now), samples(next));
    float found = 0;
    context_.compute->enqueue([&] {
      std::vector<std::byte*> address(1);
      stage_->place(step_, address);
      const um::Use use{.range = {address[0], context_.backend->staged_bytes(load_).count()},
                        .access = um::Access::kRead};
      const auto* const images = reinterpret_cast<const float*>(address[0]) + kShape.batch;
      gpu_->launch(compute_, "load", {&use, 1}, [&] { found = *images; });
      stage_->loaded();
    });
    context_.compute->synchronize();
    return found;
  }
  [[nodiscard]] std::ptrdiff_t uploads() {
    return std::ranges::count_if(
        gpu_->take_log(), [](const std::string& line) { return line.starts_with("upload: copy"); });
  }

  const LoadBatch load_{.x = kShape, .is_staged = true};
  um::RecordedGpu* gpu_ = nullptr;
  cudaStream_t compute_ = nullptr;
  Step step_;
  ExecutionContext context_;
  std::optional<BatchStage> stage_;
};

TEST_F(GpuBatchStage, BringsEachBatchOnce) {
  const std::vector<Batch> batches{batch(1, 1), batch(2, 2), batch(3, 3)};
  for (const std::uint32_t seed : {0U, 1U, 2U}) {
    const um::LateGpu late{*gpu_, seed};
    EXPECT_EQ(run(batches[0], &batches[1]), 1);
    EXPECT_EQ(run(batches[1], &batches[2]), 2);
    EXPECT_EQ(run(batches[2]), 3);
  }
  EXPECT_EQ(uploads(), 9);
}

TEST_F(GpuBatchStage, BringsTheNextBatchBeforeItIsAskedFor) {
  const Batch first = batch(1, 1);
  const Batch second = batch(2, 2);
  static_cast<void>(run(first, &second));
  stage_->settle();
  EXPECT_EQ(uploads(), 2);
}

TEST_F(GpuBatchStage, BringsAnewWhatAnotherStepCameBetween) {
  const Batch first = batch(1, 1);
  const Batch second = batch(2, 2);
  const Batch other = batch(3, 3);
  const um::LateGpu late{*gpu_, 1};
  EXPECT_EQ(run(first, &second), 1);
  EXPECT_EQ(run(other), 3);
  EXPECT_EQ(run(second), 2);
  EXPECT_EQ(uploads(), 4);
}

// Another batch may lie at the address by now.
TEST_F(GpuBatchStage, TrustsNoAddress) {
  Batch without_number = batch(0, 1);
  EXPECT_EQ(run(without_number, &without_number), 1);
  stage_->settle();
  without_number.images.assign(kShape.elements(), 5);
  EXPECT_EQ(run(without_number), 5);
}

// The thread that reads the second batch gets to it only when everybody waits for that.
TEST_F(GpuBatchStage, ReadsNoBatchWhenItHasSettled) {
  const Batch first = batch(1, 1);
  const Batch second = batch(2, 2);
  std::atomic<bool> settles = false;
  std::atomic<bool> has_settled = false;
  stage_->expect(samples(&first), samples(&second));
  static_cast<GpuLikeBackend&>(*context_.backend).on_stage = [&] {
    while (!settles || !test::all_others_sleep()) std::this_thread::yield();
    EXPECT_FALSE(has_settled);
  };
  context_.compute->enqueue([&] { stage_->loaded(); });
  context_.compute->synchronize();
  settles = true;
  stage_->settle();
  has_settled = true;
  stage_.reset();
}

TEST_F(GpuBatchStage, SaysThatABatchIsTooSmall) {
  Batch small = batch(1, 1);
  small.images.resize(1);
  EXPECT_THROW(static_cast<void>(run(small)), std::logic_error);
}

// Training on images that travel to the device as bytes.

using namespace test;  // the trainings

std::unique_ptr<Dataset> byte_images() {
  return std::make_unique<ByteDataset>(kImage, kClasses, 3 * kBatch);
}

// Images that are uploaded as bytes, and become floats on the device; on the host as well.
TEST(GpuByteImages, TeachTheSameAsFloats) {
  const auto trained = [](Opened opened, MemoryMode mode, bool has_bytes) {
    return train(std::move(opened), mode, {.has_bytes = has_bytes, .data = byte_images});
  };
  const auto expected = trained(this_machine(), MemoryMode::kResident, false).numbers();
  EXPECT_EQ(trained(this_machine(), MemoryMode::kResident, true).numbers(), expected);
  for (const MemoryMode mode : {MemoryMode::kResident, MemoryMode::kManaged, MemoryMode::kCopy}) {
    const Trained of_bytes = trained(recorded_gpu(um::RecordingApi::h200()), mode, true);
    EXPECT_EQ(of_bytes.numbers(), expected) << to_string(mode);
    EXPECT_TRUE(of_bytes.kept_budget) << to_string(mode);
    const um::Bytes beside = float_bytes(kBatch + kImage.channels * kByteValues);  // labels, table
    EXPECT_EQ(of_bytes.staged - beside, um::Bytes{kBatch * kImage.elements()}) << to_string(mode);
  }
}

class TrainerOnBytes : public testing::Test {
 protected:
  // Six images of 1x8x8 and of three classes.
  TrainerOnBytes() {
    std::vector<std::uint8_t> images{0, 0, 8, 3, 0, 0, 0, 6, 0, 0, 0, 8, 0, 0, 0, 8};
    for (unsigned i = 0; i < 6 * 64; ++i) images.push_back(static_cast<std::uint8_t>(i * i));
    for (const std::string split : {"train", "t10k"}) {
      folder_.write(split + "-images-idx3-ubyte", images);
      folder_.write(split + "-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 6, 0, 1, 2, 2, 1, 0});
    }
  }
  [[nodiscard]] TrainerOptions options() const {
    return {.network = small_network(),
            .data = "idx:" + folder_.path().string(),
            .step = {.batch = 3, .convolution = ConvolutionAlgorithm::kDirect},
            .memory = {.mode = MemoryMode::kResident},
            .training = {.steps = 4}};
  }
  // Of the same network, and of data that are floats.
  [[nodiscard]] std::string plan_of_floats(ExecutionContext context) const {
    TrainerOptions drawn = options();
    drawn.data = "synthetic";
    const Trainer trainer{std::move(context), drawn};
    EXPECT_FALSE(trainer.session().loads_bytes());
    std::ofstream{folder_.file("plan")} << prefetch::to_json(trainer.plan(), trainer.graph());
    return folder_.file("plan");
  }
  // Nobody declares to it what kernels use, so that what it trains is of no use.
  static ExecutionContext gpu() { return recorded_gpu(um::RecordingApi::h200()).context; }

  TemporaryFolder folder_;
};

// There is room for floats in it.
TEST_F(TrainerOnBytes, TakesAPlanThatKnewNothingOfTheData) {
  EXPECT_TRUE((Trainer{gpu(), options()}.session().loads_bytes()));
  TrainerOptions planned = options();
  planned.planning.plan_file = plan_of_floats(gpu());
  EXPECT_FALSE((Trainer{gpu(), planned}.session().loads_bytes()));
}

TEST_F(TrainerOnBytes, TakesSuchAPlanForBytesWhereNothingIsStaged) {
  TrainerOptions planned = options();
  planned.planning.plan_file = plan_of_floats(small_context());
  Trainer trainer{small_context(), planned};
  EXPECT_TRUE(trainer.session().loads_bytes());
  EXPECT_EQ(trainer.run().weights_sha256, Trainer(small_context(), options()).run().weights_sha256);
}

TEST_F(TrainerOnBytes, GoesOnWithItsPlan) {
  TrainerOptions saved = options();
  saved.checkpoint.folder = folder_.file("checkpoint");
  saved.training.steps = 1;
  Trainer{gpu(), saved}.run();
  saved.checkpoint.resume = true;
  saved.training.steps = 2;
  EXPECT_TRUE((Trainer{gpu(), saved}.session().loads_bytes()));
}

TEST_F(TrainerOnBytes, MixesFloats) {
  TrainerOptions mixed = options();
  mixed.training.mixing.mixup = 0.2F;
  const Trainer trainer{small_context(), mixed};
  EXPECT_FALSE(trainer.session().loads_bytes());
}

}  // namespace
}  // namespace spillway

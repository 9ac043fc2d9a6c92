#pragma once

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
#include "src/io/data/dataset.h"
#include "src/io/data/synthetic.h"
#include "src/plan/plan_question.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/run/measured_profile.h"
#include "src/train/session.h"
#include "src/train/train.h"
#include "tests/refusal.h"
#include "tests/src/gpu_like_backend.h"
#include "tests/um/cuda/late_gpu.h"
#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"
#include "um/host/host_device.h"

namespace spillway::test {

inline constexpr nets::Shape kImage{.channels = 3, .height = 32, .width = 32};
inline constexpr std::size_t kClasses = 3;
inline constexpr std::size_t kBatch = 16;

/// A machine, and what a test does with its driver where that is recorded.
struct Opened {
  ExecutionContext context;
  um::RecordedGpu* gpu = nullptr;
  GpuLikeBackend* backend = nullptr;
};

inline Opened recorded_gpu(std::unique_ptr<um::RecordingApi> driver,
                           const um::CudaOptions& options = {}) {
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

inline Opened recorded_gpu(const um::CudaFacts& facts, const um::CudaOptions& options = {}) {
  return recorded_gpu(std::make_unique<um::RecordingApi>(facts), options);
}

inline Opened this_machine() {
  return {.context = host::open_context(std::make_unique<um::HostDevice>(), 1)};
}

/// Blocks of 1 to 4 MiB: some of them move.
inline nets::Network network_of_blocks() {
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

/// Its linear layer "fc6" has 2.5 MiB of weights.
inline nets::Network network_with_large_layer() {
  nets::Builder net{"large layer", kImage};
  const nets::NodeId x = net.convolution("conv", net.input(), {.channels = 40});
  return net.build(
      net.linear("fc7", net.linear("fc6", x, {.features = 16}), {.features = kClasses}));
}

inline std::unique_ptr<Dataset> synthetic_images() {
  return std::make_unique<SyntheticDataset>(kImage, kClasses, 3 * kBatch, 1, Split::kTrain);
}

/// What a training gave.
struct Trained {
  std::vector<float> losses;
  std::string weights;
  um::Counters counters;
  bool kept_budget = true;
  std::string memory;           // in words
  std::size_t far_updates = 0;  // of a step
  um::Bytes staged;             // of a GPU's near memory, for the batch

  [[nodiscard]] auto numbers() const { return std::pair{losses, weights}; }
};

struct Training {
  std::string planner = "joint";
  um::Bytes room;       // beside the smallest budget
  um::Bytes workspace;  ///< of each convolution, on a recorded GPU
  nets::Network (*network)() = network_of_blocks;
  bool far_updates = false;
  bool has_bytes = false;                                 ///< of the images, which need them then
  std::unique_ptr<Dataset> (*data)() = synthetic_images;  ///< of kImage
};

/// Measures, plans the smallest budget and `room` more, and trains four steps; a recorded GPU does
/// nothing of them before it must. The last two are captured where they can be.
inline Trained train(Opened opened, MemoryMode mode, const Training& training = {}) {
  ExecutionContext& context = opened.context;
  const nets::Network net = training.network();
  if (opened.backend != nullptr) opened.backend->workspace = training.workspace;
  const Workload near{net,
                      *context.backend,
                      {.batch = kBatch,
                       .convolution = ConvolutionAlgorithm::kDirect,
                       .has_byte_images = training.has_bytes,
                       .largest_update = um::Bytes{600U << 10U}}};
  std::unique_ptr<const Workload> updating_far;
  if (training.far_updates) {
    updating_far = near.with(*context.backend, Features{}.with(StatePlace::kUpdatedFar));
  }
  const Workload& workload = updating_far != nullptr ? *updating_far : near;
  const um::Bytes budget =
      training.room +
      (mode == MemoryMode::kResident ? workload.need().resident : workload.need().smallest);
  if (opened.backend != nullptr) opened.backend->declare(workload.training());
  const prefetch::Profile profile = measure_profile(context,
                                                    {.workload = workload,
                                                     .limit = budget,
                                                     .mode = mode,
                                                     .space = {},
                                                     .with_link = mode != MemoryMode::kResident},
                                                    {}, [](double) {});
  const Plans plans = answer({.steps = workload,
                              .profile = profile,
                              .budget = budget,
                              .request = {.memory = mode,
                                          .planner = &prefetch::find_planner(training.planner),
                                          .may_recompute = false}})
                          .plans;
  Session session{context, workload, plans, mode, um::ManagedOptions{}};
  session.state().initialise(1);
  const std::unique_ptr<Dataset> data = training.data();
  BatchLoader loader{*data, kBatch, 1, 0, loader_options(session, /*threads=*/1)};
  std::optional<um::LateGpu> late;
  if (opened.gpu != nullptr) late.emplace(*opened.gpu, 1);
  Trained trained{.memory = session.memory_description(),
                  .far_updates = plans.training.far_runs.size(),
                  .staged = opened.gpu != nullptr
                                ? workload.training().graph[*workload.training().staged].size
                                : um::Bytes{}};
  for (std::uint64_t step = 0; step < 4; ++step) {
    const Batch& batch = loader.next();
    const StepReport report = session.train({.seed = 1,
                                             .step = step,
                                             .learning_rate = 0.01F,
                                             .batch = &batch,
                                             .next_batch = loader.peek()});
    trained.losses.push_back(report.loss);
    trained.counters += report.counters;
    trained.kept_budget = trained.kept_budget && report.near_peak <= budget;
  }
  session.settle();
  trained.weights = session.state().sha256();
  return trained;
}

}  // namespace spillway::test

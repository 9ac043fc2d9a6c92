#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/interconnect.h"
#include "src/cuda/ranks/nccl_communicator.h"
#include "src/plan/plan_question.h"
#include "src/train/data_parallel/rank_options.h"
#include "src/train/data_parallel/rank_step.h"
#include "src/train/trainer.h"
#include "tests/src/cuda/ranks/nccl_ranks.h"
#include "tests/src/cuda/ranks/stand_in_nccl.h"
#include "tests/src/cuda/ranks/waiting_gpus.h"
#include "tests/src/gpu_training.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"
#include "um/hints.h"

namespace spillway::testing {

inline constexpr std::size_t kRanks = 2;

// Number kernels as on a GPU: the driver is told which memory they use.
class DeclaredNumberKernels final : public NumberKernels {
 public:
  DeclaredNumberKernels(um::RecordedGpu& gpu, const cuda::ExchangeStream& stream)
      : gpu_{gpu}, stream_{stream} {}
  void add(std::span<float> to, std::span<const float> numbers) const override {
    launch("add", to, numbers, [=] { host_number_kernels().add(to, numbers); });
  }
  void copy(std::span<float> to, std::span<const float> from) const override {
    launch("copy", to, from, [=] { host_number_kernels().copy(to, from); });
  }
  void divide(std::span<float> numbers, float by) const override {
    launch("divide", numbers, {}, [=] { host_number_kernels().divide(numbers, by); });
  }
  void fill(std::span<float> numbers, float value) const override {
    launch("fill", numbers, {}, [=] { host_number_kernels().fill(numbers, value); });
  }

 private:
  void launch(const std::string& name, std::span<float> written, std::span<const float> read,
              std::function<void()> act) const {
    std::vector<um::Use> uses{
        {.range = std::as_writable_bytes(written), .access = um::Access::kReadWrite}};
    if (!read.empty() && read.data() != written.data()) {
      auto* const address = reinterpret_cast<std::byte*>(const_cast<float*>(read.data()));
      uses.push_back({.range = {address, read.size_bytes()}, .access = um::Access::kRead});
    }
    gpu_.launch(stream_.enter(), name, uses, std::move(act));
  }

  um::RecordedGpu& gpu_;
  const cuda::ExchangeStream& stream_;
};

// One exchange of a rank.
struct Group {
  std::string line;  ///< "send 8 to 1, receive 8 from 1"
  std::string stream;
  friend bool operator==(const Group&, const Group&) = default;
};

// Describes the exchange in words.
inline std::string line_of(const NcclWork& work) {
  std::string line;
  for (const NcclPiece& piece : work.pieces) {
    const std::string size = std::to_string(piece.bytes.size());
    line += line.empty() ? "" : ", ";
    if (piece.kind == NcclPiece::Kind::kSum) {
      line += "sum " + size;
    } else {
      line += (piece.kind == NcclPiece::Kind::kSend ? "send " : "receive ") + size +
              (piece.kind == NcclPiece::Kind::kSend ? " to " : " from ") +
              std::to_string(piece.peer);
    }
  }
  return line;
}

// Gives exchanges to the streams of the ranks' GPUs and records them.
class Exchanges {
 public:
  explicit Exchanges(std::array<WatchedGpu*, kRanks> gpus) : gpus_{gpus} {
    stand_in().ask = [this](const NcclWork& work) { note(work); };
    stand_in().give = [this](const NcclWork& work) { give(work); };
  }
  Exchanges(const Exchanges&) = delete;
  Exchanges& operator=(const Exchanges&) = delete;
  ~Exchanges() { stand_in().reset(); }

  // Returns a rank's exchanges. Thread safety: one thread per rank.
  [[nodiscard]] const std::vector<Group>& of(std::size_t rank) const { return groups_[rank]; }
  // Returns the number of exchanges so far.
  [[nodiscard]] std::size_t count(std::size_t rank) const { return counts_[rank]; }

 private:
  void note(const NcclWork& work) {
    const auto rank = static_cast<std::size_t>(work.rank);
    groups_[rank].push_back({.line = line_of(work), .stream = gpus_[rank]->name_of(work.stream)});
    ++counts_[rank];
  }
  void give(const NcclWork& work) {
    std::vector<um::Use> uses;
    for (const NcclPiece& piece : work.pieces) {
      const bool is_read = piece.kind == NcclPiece::Kind::kSend;
      uses.push_back(
          {.range = piece.bytes, .access = is_read ? um::Access::kRead : um::Access::kReadWrite});
    }
    gpus_[static_cast<std::size_t>(work.rank)]->launch(work.stream, "nccl: " + line_of(work), uses,
                                                       work.act);
  }

  std::array<WatchedGpu*, kRanks> gpus_;
  std::array<std::vector<Group>, kRanks> groups_;
  std::array<std::atomic<std::size_t>, kRanks> counts_{};
};

// Joins like the plug-in, except for kernels.
inline std::unique_ptr<Communicator> join_gpus(WatchedGpu& gpu, Communicator& process) {
  cuda::DeviceCommunicator::Device device;
  device.stream = std::make_unique<cuda::ExchangeStream>(gpu);
  device.kernels = std::make_unique<DeclaredNumberKernels>(gpu, *device.stream);
  return std::make_unique<cuda::NcclCommunicator>(process, std::move(device), CommunicatorOptions{},
                                                  stand_in_functions());
}

}  // namespace spillway::testing

namespace spillway {
namespace {

// Two ranks train on GPUs without a driver (tests/um/cuda/recording_api.h), with the host's
// kernels. They exchange through a stand-in for NCCL.

using namespace spillway::testing;
using namespace spillway::test;
using um::Bytes;

constexpr std::uint64_t kSteps = 2;

struct RankTraining {
  MemoryMode mode = MemoryMode::kResident;
  RankReduction reduction = RankReduction::kTree;
  std::size_t micro_batches = 4;
  nets::Network (*network)() = network_of_blocks;
  // Groups per step; kernels are held back until the step's first group. 0: never held back.
  std::size_t kept_before = 0;
};

struct RankTrained {
  std::vector<float> losses;
  std::string weights;
  std::vector<std::size_t> buckets;  // numbers per exchange, in the order of the plan

  [[nodiscard]] auto numbers() const { return std::pair{losses, weights}; }
};

std::vector<std::size_t> bucket_counts(const prefetch::TaskGraph& graph,
                                       const prefetch::Plan& plan) {
  std::vector<std::size_t> counts;
  for (const prefetch::ExchangeRun& run : plan.exchanges) {
    Bytes size;
    for (const prefetch::DataId id : graph.exchanges[run.exchange].blocks) {
      size += um::round_up(graph[id].size, prefetch::kNearAlignment);
    }
    counts.push_back(size.count() / sizeof(float));
  }
  return counts;
}

// Plans with a modelled machine, so that all ranks make the same plan.
Plans plans_of(const Workload& workload, Bytes budget, MemoryMode mode) {
  const prefetch::Machine machine = prefetch::find_machine("h100");
  const prefetch::TaskGraph& graph = workload.training().graph;
  prefetch::Profile profile = prefetch::model_profile(graph, machine);
  profile.exchanges = prefetch::exchange_times(
      graph, {.ranks = kRanks, .bandwidth = um::Bandwidth{25e9}}, profile.link);
  return answer({.steps = workload,
                 .profile = profile,
                 .budget = budget,
                 .request = {.memory = mode,
                             .planner = &prefetch::find_planner("joint"),
                             .may_recompute = false}})
      .plans;
}

RankTrained train_rank(Opened& opened, const RankOptions& ranks, const RankTraining& training) {
  ExecutionContext& context = opened.context;
  const MemoryMode mode = training.mode;
  const nets::Network net = training.network();
  const StepOptions step{.batch = kBatch, .convolution = ConvolutionAlgorithm::kDirect};
  const Communicator& own = ranks.communicator;
  const MicroBatches batches =
      part_of_rank(all_of(kBatch, prefetch::cut(kBatch, kBatch / training.micro_batches)),
                   own.rank(), own.size());
  const Workload workload{
      net, *context.backend, step, batches, ranks.features(), [&](const Step& program) {
        return RankStep::near_memory(batches, ranks, program);
      }};
  if (opened.backend != nullptr) opened.backend->declare(workload.training());
  const Bytes budget =
      mode == MemoryMode::kResident ? workload.need().resident : workload.need().smallest;
  const Plans plans = plans_of(workload, budget, mode);
  Session session{context, workload, plans, mode, {}, {}, ranks};
  session.state().initialise(1);
  const DatasetPair data{
      .train = std::make_unique<SyntheticDataset>(kImage, kClasses, 3 * kBatch, 1, Split::kTrain),
      .test = std::make_unique<SyntheticDataset>(kImage, kClasses, kBatch, 1, Split::kTest)};
  if (opened.gpu != nullptr && training.kept_before > 0) opened.gpu->hold();
  RankTrained trained{.buckets = bucket_counts(workload.training().graph, plans.training)};
  train(session, data, {.steps = kSteps, .evaluate_every = 0},
        {.on_step = [&](auto, auto,
                        const StepReport& report) { trained.losses.push_back(report.loss); },
         .on_evaluation = [](auto, auto, const auto&) { return AfterEvaluation::kGoOn; },
         .on_checkpoint = [](auto) {}});
  trained.weights = session.state().sha256();
  return trained;
}

RankOptions rank_options(Communicator& process, Communicator& device,
                         const RankTraining& training) {
  return {.communicator = process,
          .device_communicator = device,
          .buckets = {.first = Bytes{64}, .others = Bytes{16U << 10U}},
          .reduction = training.reduction};
}

// Returns the results by rank.
std::vector<RankTrained> train_on_host(std::size_t ranks, const RankTraining& training) {
  ThreadRanks group{ranks};
  std::vector<RankTrained> trained(ranks);
  const auto errors = on_ranks(group, [&](Communicator& process) {
    Opened opened = this_machine();
    trained[process.rank()] =
        train_rank(opened, rank_options(process, process, training), training);
  });
  EXPECT_EQ(errors, no_errors(group));
  return trained;
}

struct OnGpus {
  std::vector<RankTrained> trained;  // by rank
  bool had_to_let_go = false;
  std::array<std::vector<Group>, kRanks> groups;
};

OnGpus train_on_gpus(const RankTraining& training) {
  OnGpus result{.trained = std::vector<RankTrained>(kRanks)};
  std::array<WatchedGpu*, kRanks> gpus{};
  std::vector<Opened> opened;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    auto driver = std::make_unique<WatchedGpu>();
    gpus[rank] = driver.get();
    opened.push_back(recorded_gpu(std::move(driver)));
  }
  const Exchanges exchanges{gpus};
  ThreadRanks group{kRanks};
  const auto is_kept = [&](std::size_t rank) {
    const std::size_t each = training.kept_before;
    return exchanges.count(rank) % each == 0 && exchanges.count(rank) < kSteps * each;
  };
  std::optional<WaitingGpus> waiting;
  if (training.kept_before > 0) {
    waiting.emplace(std::vector<WatchedGpu*>(gpus.begin(), gpus.end()), is_kept);
  }
  const auto errors = on_ranks(group, [&](Communicator& process) {
    const std::size_t rank = process.rank();
    const auto devices = join_gpus(*gpus[rank], process);
    result.trained[rank] =
        train_rank(opened[rank], rank_options(process, *devices, training), training);
  });
  result.had_to_let_go = waiting && waiting->had_to_let_go();
  waiting.reset();
  EXPECT_EQ(errors, no_errors(group));
  for (std::size_t rank = 0; rank < kRanks; ++rank) result.groups[rank] = exchanges.of(rank);
  return result;
}

// Returns how many of numbers [0, n) the rank owns; rank zero owns about half:
// TreeReduction::slice().
std::size_t owned(std::size_t rank, std::size_t n) {
  ThreadRanks group{kRanks};
  const auto end = group.end(rank);
  return TreeReduction{*end, kRanks}.own_slice(n).count;
}

std::string swapped(std::size_t rank, std::size_t sent, std::size_t received) {
  const std::string peer = std::to_string(1 - rank);
  const std::string send = "send " + std::to_string(sent * sizeof(float)) + " to " + peer;
  const std::string receive =
      "receive " + std::to_string(received * sizeof(float)) + " from " + peer;
  return send + ", " + receive;
}

// Returns the exchanges of a step: each bucket in two halves (slices to their owners, sums back),
// then the statistics of all micro-batches, two micro-batches per rank.
std::vector<std::string> expected_lines(std::size_t rank, const std::vector<std::size_t>& buckets) {
  std::vector<std::string> lines;
  for (const std::size_t n : buckets) {
    const std::size_t own = owned(rank, n);
    lines.push_back(swapped(rank, n - own, own));
    lines.push_back(swapped(rank, own, n - own));
  }
  constexpr std::size_t kStatistics = 3 * 2 * 32;  // mean and variance of three norms
  lines.push_back(swapped(rank, 2 * kStatistics, 2 * kStatistics));
  return lines;
}

TEST(TwoGpuTraining, ExchangesEachBucketByTheTree) {
  const OnGpus on_gpus = train_on_gpus({});
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    const std::vector<std::size_t>& buckets = on_gpus.trained[rank].buckets;
    EXPECT_GE(buckets.size(), 3U);
    std::vector<std::string> expected = expected_lines(rank, buckets);
    const std::vector<std::string> of_step = expected;
    expected.insert(expected.end(), of_step.begin(), of_step.end());
    std::vector<std::string> lines;
    for (const Group& each : on_gpus.groups[rank]) {
      lines.push_back(each.line);
      EXPECT_EQ(each.stream, "exchange");
    }
    EXPECT_EQ(lines, expected);
  }
}

// No GPU completes its kernels before the first bucket is exchanged, so the last kernels of
// backward wait. Each rank has one micro-batch, so that a step has one backward pass.
TEST(TwoGpuTraining, ExchangesBesideTheBackwardPass) {
  RankTraining training{.micro_batches = 2};
  const OnGpus free = train_on_gpus(training);
  EXPECT_EQ(free.groups[0].size() % kSteps, 0U);
  training.kept_before = free.groups[0].size() / kSteps;
  const OnGpus kept = train_on_gpus(training);
  EXPECT_FALSE(kept.had_to_let_go);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(kept.trained[rank].numbers(), free.trained[rank].numbers());
    EXPECT_EQ(kept.groups[rank], free.groups[rank]);
  }
}

// Two of four micro-batches on each rank wait for the other two. Only gradients wait for the GPU,
// since there are no statistics.
TEST(TwoGpuTraining, KeepsSumsThatWaitInTheGpu) {
  const RankTraining many{.micro_batches = 8, .network = network_with_large_layer};
  const auto expected = train_on_host(1, many).front().numbers();
  for (const RankTrained& trained : train_on_gpus(many).trained) {
    EXPECT_EQ(trained.numbers(), expected);
  }
}

TEST(TwoGpuTraining, HasNcclAddUpWhereItIsToBeFastest) {
  const RankTraining fastest{.reduction = RankReduction::kFastest};
  const OnGpus on_gpus = train_on_gpus(fastest);
  const std::vector<RankTrained>& trained = on_gpus.trained;
  EXPECT_EQ(trained[0].numbers(), trained[1].numbers());
  // For two ranks on a node each the sum is a + b in any order.
  EXPECT_EQ(trained[0].numbers(), train_on_host(2, {}).front().numbers());
  EXPECT_EQ(on_gpus.groups[0].front().line,
            "sum " + std::to_string(trained[0].buckets.front() * sizeof(float)));
}

// A whole training of two ranks, on two GPUs without a driver.

TrainerOptions trainer_options(Communicator& process) {
  return {.network = small_network(),
          .step = {.batch = 8, .convolution = ConvolutionAlgorithm::kDirect},
          // The driver does not see kernels launched by a Trainer and cannot repeat them.
          .memory = {.mode = MemoryMode::kResident, .space = {.gpu = {.graph = false}}},
          .planning = {.micro_batches = {.count = 4}},
          .training = {.steps = 3, .evaluate_every = 0},
          .ranks = {.communicator = process,
                    .buckets = {.first = um::Bytes{64}, .others = um::Bytes{512}}}};
}

using Change = std::function<void(TrainerOptions&)>;

std::string trained_alone(const Change& change) {
  ThreadRanks one{1};
  const auto alone = one.end(0);
  TrainerOptions options = trainer_options(*alone);
  change(options);
  return Trainer{small_context(), options}.run().weights_sha256;
}

// Expects the results of one rank from two ranks.
void expect_same_on_two_gpus(const Change& change) {
  const std::string expected = trained_alone(change);
  std::array<WatchedGpu*, kRanks> gpus{};
  std::vector<Opened> opened;
  for (WatchedGpu*& gpu : gpus) {
    auto driver = std::make_unique<WatchedGpu>();
    gpu = driver.get();
    opened.push_back(recorded_gpu(std::move(driver)));
  }
  const Exchanges exchanges{gpus};
  ThreadRanks group{kRanks};
  std::array<std::string, kRanks> weights;
  const auto errors = on_ranks(group, [&](Communicator& process) {
    const std::size_t rank = process.rank();
    TrainerOptions options = trainer_options(process);
    change(options);
    options.ranks.join_devices = [&](ExecutionContext&) { return join_gpus(*gpus[rank], process); };
    Trainer trainer{std::move(opened[rank].context), std::move(options)};
    EXPECT_EQ(trainer.options().ranks.between_near_memory().library(), "nccl");
    weights[rank] = trainer.run().weights_sha256;
  });
  EXPECT_EQ(errors, no_errors(group));
  EXPECT_EQ(weights[0], expected);
  EXPECT_EQ(weights[1], expected);
}

// Covers everything that a Trainer does: only rank zero draws weights, and the connection of the
// GPUs is measured.
TEST(TwoGpuTrainer, BeginsWithTheFirstRanksWeights) {
  expect_same_on_two_gpus([](TrainerOptions&) {});
}

// Each GPU has half of the moments. The checkpoint has all of them, so that one GPU can continue.
TEST(TwoGpuTrainer, DividesTheOptimizer) {
  const TemporaryFolder folder;
  const auto divided = [&](TrainerOptions& options) {
    options.network = wide_network();
    options.step.optimizer = AdamOptions{.decoupled = true};
    options.ranks.divides_optimizer = true;
  };
  expect_same_on_two_gpus([&](TrainerOptions& options) {
    divided(options);
    options.checkpoint.folder =
        options.ranks.communicator.get().size() == 2 ? folder.file("two") : "";
  });
  const auto longer = [&](TrainerOptions& options) {
    divided(options);
    options.training.steps = 5;
  };
  EXPECT_EQ(trained_alone([&](TrainerOptions& options) {
              longer(options);
              options.checkpoint = {.folder = folder.file("two"), .resume = true};
            }),
            trained_alone(longer));
}

}  // namespace
}  // namespace spillway

#include "src/train/data_parallel/rank_step.h"

#include <algorithm>
#include <numeric>

#include "prefetch/block_sizes.h"
#include "src/ranks/collectives.h"

namespace spillway {
namespace {

using um::Bytes;

// A micro-batch's blocks of statistics, each aligned.
Bytes bytes_of_one(const Step& step) {
  Bytes size;
  if (step.statistics.empty()) return size;
  for (const prefetch::DataId id : step.statistics.front()) {
    size += um::round_up(step.graph[id].size, prefetch::kNearAlignment);
  }
  return size;
}

std::size_t aligned_floats(std::span<const float> block) {
  return um::round_up(Bytes{block.size_bytes()}, prefetch::kNearAlignment).count() / sizeof(float);
}

}  // namespace

Bytes BatchStatistics::others_memory(const MicroBatches& batches, const Step& step) {
  return (batches.count() - batches.own.count()) * bytes_of_one(step);
}

BatchStatistics::BatchStatistics(const MicroBatches& batches, Communicator& communicator,
                                 const Step& step, std::span<std::byte* const> addresses,
                                 um::Memory& memory)
    : batches_{batches},
      communicator_{communicator},
      stride_{bytes_of_one(step).count() / sizeof(float)} {
  if (stride_ == 0) return;
  for (const StateBlock& block : step.state) {
    if (block.role != StateRole::kStatistics) continue;
    for (const prefetch::DataId id : block.ids) {
      blocks_.emplace_back(reinterpret_cast<float*>(addresses[static_cast<std::size_t>(id)]),
                           step.graph[id].size.count() / sizeof(float));
    }
  }
  block_ = um::Block{memory, batches_.count() * bytes_of_one(step)};
  communicator_.kernels().fill({left_by(0).data(), batches_.count() * stride_}, 0.F);
}

void BatchStatistics::place(const Step& step, std::span<std::byte*> addresses) const {
  for (std::size_t i = 0; i < step.statistics.size() && stride_ > 0; ++i) {
    float* next = left_by(batches_.own.first + i).data();
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      addresses[static_cast<std::size_t>(step.statistics[i][b])] =
          reinterpret_cast<std::byte*>(next);
      next += aligned_floats(blocks_[b]);
    }
  }
}

void BatchStatistics::begin_batch() {
  if (stride_ == 0) return;
  for (std::size_t i = batches_.own.first; i < batches_.own.end; ++i) {
    std::span<float> to = left_by(i);
    for (const std::span<float> block : blocks_) {
      communicator_.kernels().copy(to.first(block.size()), block);
      to = to.subspan(aligned_floats(block));
    }
  }
  communicator_.finish();
}

void BatchStatistics::end_batch() {
  if (stride_ == 0) return;
  const std::size_t count = batches_.count();
  all_gather_micro_batches(communicator_, count, stride_ * sizeof(float),
                           std::as_writable_bytes(std::span{left_by(0).data(), count * stride_}));
  std::span<float> sum = left_by(0);
  for (std::size_t i = 1; i < count; ++i) communicator_.kernels().add(sum, left_by(i));
  communicator_.kernels().divide(sum, static_cast<float>(count));
  for (const std::span<float> block : blocks_) {
    communicator_.kernels().copy(block, sum.first(block.size()));
    sum = sum.subspan(aligned_floats(block));
  }
  communicator_.finish();
}

std::span<float> BatchStatistics::left_by(std::size_t micro_batch) const {
  return {reinterpret_cast<float*>(block_.data()) + micro_batch * stride_, stride_};
}

Bytes RankStep::near_memory(const MicroBatches& batches, const RankOptions& options,
                            const Step& step) {
  return ExchangedGradients::scratch_memory(batches, options, step) +
         BatchStatistics::others_memory(batches, step);
}

RankStep::RankStep(const MicroBatches& batches, const RankOptions& options, const Step& step,
                   std::span<std::byte* const> addresses, um::Memory& memory)
    : batches_{batches},
      communicator_{options.communicator.get()},
      gradients_{batches, options, step, memory},
      statistics_{batches, options.between_near_memory(), step, addresses, memory} {}

void RankStep::place(const Step& step, std::span<std::byte*> addresses) const {
  gradients_.place(step, addresses);
  statistics_.place(step, addresses);
}

std::size_t RankStep::begin_batch(std::size_t counted) {
  statistics_.begin_batch();
  const auto all = all_gather_values(communicator_, std::uint64_t{counted});
  return std::accumulate(all.begin(), all.end(), std::size_t{0});
}

StepLoss RankStep::end_batch(std::span<const StepLoss> own) {
  statistics_.end_batch();
  std::vector<StepLoss> all(batches_.count());
  std::ranges::copy(own, all.begin() + static_cast<std::ptrdiff_t>(batches_.own.first));
  all_gather_micro_batches(communicator_, all.size(), sizeof(StepLoss),
                           std::as_writable_bytes(std::span{all}));
  StepLoss sum;
  for (const StepLoss& each : all) {
    sum.loss += each.loss;
    sum.correct += each.correct;
  }
  return sum;
}

}  // namespace spillway

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory_resource>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "src/data/batch_order.h"
#include "src/data/dataset.h"
#include "src/ops/backend.h"

namespace spillway {

/// Loads batches ahead of the step that needs them, in a thread of its own. That thread inherits
/// the processor affinity of the thread that constructs the loader: construct it before binding.
///
/// Holds 1 + `prefetch_depth` batches in all and allocates nothing more per batch.
/// Thread safety: none; use from one thread.
class BatchLoader {
 public:
  static constexpr std::size_t kUsualDepth = 2;

  /// Batches for training, shuffled anew each epoch, from step `first_step` on.
  /// Requires: `dataset` and `memory`, in which batches are, outlive the loader; batch >= 1;
  /// prefetch_depth >= 1. Throws: um::Error when the data set has fewer images than a batch.
  BatchLoader(const Dataset& dataset, std::size_t batch, std::uint64_t seed,
              std::uint64_t first_step, std::size_t prefetch_depth = kUsualDepth,
              std::pmr::memory_resource& memory = *std::pmr::new_delete_resource());
  /// Batches in any order, such as evaluation_order(). Padding is black and has the label -1.
  BatchLoader(const Dataset& dataset, std::size_t batch, BatchOrder order,
              std::uint64_t first_step = 0, std::size_t prefetch_depth = kUsualDepth,
              std::pmr::memory_resource& memory = *std::pmr::new_delete_resource());

  ~BatchLoader() = default;  // the thread stops after the image at hand
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;
  BatchLoader(BatchLoader&&) = delete;
  BatchLoader& operator=(BatchLoader&&) = delete;

  /// The next step's batch, valid until the next call. Waits until it is loaded.
  /// Throws: what reading an image threw, after the batches before it.
  [[nodiscard]] const Batch& next();
  /// What next() will return next, if it is loaded by now; else null. Valid as long as that.
  [[nodiscard]] const Batch* peek();

 private:
  void load(const std::stop_token& stop, std::uint64_t first_step);
  [[nodiscard]] bool fill(const std::stop_token& stop, std::uint64_t step, Batch& batch) const;
  [[nodiscard]] Batch* wait_for_spare(const std::stop_token& stop);

  const Dataset& dataset_;
  std::size_t batch_;
  BatchOrder order_;
  std::vector<Batch> batches_;  // all there are; none moves or gets other memory
  Batch* current_;              // what next() returned last

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Batch*> spare_;
  std::deque<Batch*> loaded_;
  std::exception_ptr failure_;

  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace spillway

#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "src/io/data/dataset.h"
#include "src/io/data/mixing.h"
#include "src/ops/backend.h"
#include "um/bytes.h"

namespace spillway {

/// The image at `place` of the batch of `step`, or nothing where the batch is padded.
using BatchOrder = std::function<std::optional<std::size_t>(std::uint64_t step, std::size_t place)>;

/// The images at places [first, first + count) of each batch.
struct BatchPart {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Throws: um::Error when there are fewer images than a batch needs.
void expect_batch(std::size_t size, std::size_t batch);

/// Whole batches in an epoch of `size` images. The rest is left out of that epoch.
/// Throws: as expect_batch().
[[nodiscard]] std::uint64_t steps_per_epoch(std::size_t size, std::size_t batch);

/// Batches that hold all of `size` images, the last one padded.
[[nodiscard]] std::uint64_t evaluation_steps(std::size_t size, std::size_t batch);

/// Every epoch in a shuffled order of its own, a function of `seed` and the epoch's number, so that
/// a training can start at any step. Throws: as expect_batch().
[[nodiscard]] BatchOrder training_order(std::size_t size, std::size_t batch, std::uint64_t seed);

/// A part of each batch of `order`, as a batch of its own.
[[nodiscard]] BatchOrder part_of(BatchOrder order, const BatchPart& part);

/// Each image once, in order, then padding for ever.
[[nodiscard]] BatchOrder evaluation_order(std::size_t size, std::size_t batch);

/// What a loader takes to load batches ahead.
struct LoaderOptions {
  std::size_t threads = 1;
  std::size_t prefetch_depth = 2;  ///< batches that are loaded ahead, or being loaded
  /// In which batches are; outlives the loader.
  std::pmr::memory_resource* memory = std::pmr::new_delete_resource();
  MixOptions mixing = {};  ///< of batches for training, whose labels then are MixedLabels
  /// What is loaded of each batch for training; nothing: all of it. Images of a part are not mixed.
  std::optional<BatchPart> part = {};
  bool has_bytes = false;  ///< batches have Batch::bytes. Requires: can_load_bytes()
};

/// Whether batches of `dataset`, mixed like this, may have Batch::bytes: they stand for the same
/// numbers. Numbers of mixed images are no bytes.
[[nodiscard]] bool can_load_bytes(const Dataset& dataset, const MixOptions& mixing);

/// Threads that load so fast as this machine can: one for each processor that this process may use,
/// at most 16.
[[nodiscard]] std::size_t usual_loader_threads();

/// Loads batches ahead of the step that needs them, in threads of its own, which share the images
/// of a batch. They inherit the processor affinity of the thread that constructs the loader:
/// construct it before binding. Batches do not depend on the number of threads.
///
/// Holds 1 + `prefetch_depth` batches in all and allocates nothing more per batch.
/// Thread safety: none; use from one thread.
class BatchLoader {
 public:
  /// Batches for training, shuffled anew each epoch, from step `first_step` on.
  /// What they are mixed by is a function of the seed, the epoch and the batch's place in it.
  /// Requires: `dataset` outlives the loader; batch >= 1; threads and prefetch_depth >= 1; one
  /// label for each image where images are mixed.
  /// Throws: um::Error when the data set has fewer images than a batch.
  BatchLoader(const Dataset& dataset, std::size_t batch, std::uint64_t seed,
              std::uint64_t first_step, const LoaderOptions& options = {});
  /// Batches in any order, such as evaluation_order(), all as in the first epoch. Padding is black
  /// and has the label -1. Requires: as above; nothing is mixed.
  BatchLoader(const Dataset& dataset, std::size_t batch, BatchOrder order,
              const LoaderOptions& options = {});

  ~BatchLoader();  // the threads stop after the images at hand
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;
  BatchLoader(BatchLoader&&) = delete;
  BatchLoader& operator=(BatchLoader&&) = delete;

  /// The next step's batch, valid until the next call. Waits until it is loaded.
  /// Throws: what reading an image threw, the first one of the batch, after the batches before it.
  [[nodiscard]] const Batch& next();
  /// What next() will return next, if it is loaded by now; else null. Valid as long as that.
  [[nodiscard]] const Batch* peek();
  /// How long the last next() waited.
  [[nodiscard]] um::Nanoseconds waited() const { return waited_; }
  /// What all its batches take.
  [[nodiscard]] um::Bytes bytes() const;

 private:
  // A batch that is being loaded, or is.
  struct Slot {
    Batch batch;
    std::uint64_t step = 0;
    std::size_t begun = 0;  // images that a thread has taken
    std::size_t done = 0;
    bool is_mixed = false;         // where that is to be
    std::size_t failed_place = 0;  // the first one that failed, where one has
    std::exception_ptr failure;
  };
  struct Image {
    Slot* slot = nullptr;  // null: there are none left
    std::size_t place = 0;
  };

  BatchLoader(const Dataset& dataset, std::size_t batch, BatchOrder order, std::uint64_t first_step,
              std::optional<std::uint64_t> steps_in_epoch, const LoaderOptions& options,
              std::uint64_t seed);
  void load(const std::stop_token& stop);
  [[nodiscard]] Image take(const std::stop_token& stop);
  void open(Slot& slot);
  [[nodiscard]] std::exception_ptr read(const Image& image) const;
  void finish(const Image& image, const std::exception_ptr& failure);
  void mix(Slot& slot) const;
  [[nodiscard]] std::size_t label_numbers() const;  // of an image, in a batch
  [[nodiscard]] bool is_loaded() const;             // what comes next
  // All of it is, or what had been begun when an image of it failed.
  [[nodiscard]] bool is_whole(const Slot& slot) const;

  const Dataset& dataset_;
  const ByteImages* bytes_;  // null where batches have floats
  std::size_t batch_;
  BatchOrder order_;
  std::optional<std::uint64_t> steps_in_epoch_;  // nothing: there is one epoch
  MixOptions mixing_;
  std::uint64_t seed_ = 0;   // of what is mixed
  std::vector<Slot> slots_;  // all there are; none moves or gets other memory
  Slot* current_;            // what next() returned last
  um::Nanoseconds waited_{};

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t next_step_;  // to be begun
  std::vector<Slot*> spare_;
  std::deque<Slot*> begun_;  // in the order of steps; images are taken from the last one
  bool has_failed_ = false;  // nothing more is taken

  std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace spillway

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

/// Number of whole batches in an epoch of `size` images. The epoch leaves out the rest.
/// Throws: as expect_batch().
[[nodiscard]] std::uint64_t steps_per_epoch(std::size_t size, std::size_t batch);

/// Number of batches that hold all `size` images; the last batch is padded.
[[nodiscard]] std::uint64_t evaluation_steps(std::size_t size, std::size_t batch);

/// Returns an order that shuffles every epoch anew. It depends only on `seed` and the epoch's
/// number, so that training can start at any step. Throws: as expect_batch().
[[nodiscard]] BatchOrder training_order(std::size_t size, std::size_t batch, std::uint64_t seed);

/// Returns an order with each image once, followed by endless padding.
[[nodiscard]] BatchOrder evaluation_order(std::size_t size, std::size_t batch);

/// How a loader loads batches ahead.
struct LoaderOptions {
  std::size_t threads = 1;
  std::size_t prefetch_depth = 2;  ///< batches that are loaded ahead, or being loaded
  /// Memory for the batches; outlives the loader.
  std::pmr::memory_resource* memory = std::pmr::new_delete_resource();
  MixOptions mixing = {};  ///< mixes training batches, which then have MixedLabels
  /// The part of each training batch to load; nothing: all of it. Parts are mixed as in the batch.
  std::optional<BatchPart> part = {};
  bool has_bytes = false;  ///< batches have Batch::bytes. Requires: can_load_bytes()
};

/// Returns whether batches of `dataset` may have Batch::bytes: each byte stands for one number.
/// Mixed images have other numbers than bytes stand for.
[[nodiscard]] bool can_load_bytes(const Dataset& dataset, const MixOptions& mixing);

/// Number of loader threads for this machine: one per processor that this process may use, at most
/// 16.
[[nodiscard]] std::size_t usual_loader_threads();

/// Loads batches in background threads, ahead of the step that needs them. The threads share the
/// images of a batch and inherit the processor affinity of the constructing thread: construct the
/// loader before binding. Batches do not depend on the number of threads.
///
/// Holds 1 + `prefetch_depth` batches and allocates nothing more per batch.
/// Thread safety: none; use from one thread.
class BatchLoader {
 public:
  /// Loads batches for training from step `first_step` on, shuffled anew each epoch. Mixing depends
  /// only on the seed, the epoch and the batch's place in it.
  /// Requires: `dataset` outlives the loader; batch >= 1; threads and prefetch_depth >= 1; one
  /// label for each image where images are mixed.
  /// Throws: um::Error when the data set has fewer images than a batch.
  BatchLoader(const Dataset& dataset, std::size_t batch, std::uint64_t seed,
              std::uint64_t first_step, const LoaderOptions& options = {});
  /// Loads batches in any order, such as evaluation_order(), all as in the first epoch. Padding is
  /// black and has the label -1. Requires: as above; no mixing.
  BatchLoader(const Dataset& dataset, std::size_t batch, BatchOrder order,
              const LoaderOptions& options = {});

  ~BatchLoader();  // the threads finish their current images first
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;
  BatchLoader(BatchLoader&&) = delete;
  BatchLoader& operator=(BatchLoader&&) = delete;

  /// Returns the next step's batch, valid until the next call. Waits until it is loaded.
  /// Throws: the first exception from reading the batch's images; earlier batches are returned
  /// first.
  [[nodiscard]] const Batch& next();
  /// Returns the batch that next() will return if it is loaded already; otherwise null. Valid until
  /// the next call of next().
  [[nodiscard]] const Batch* peek();
  /// How long the last next() waited.
  [[nodiscard]] um::Nanoseconds waited() const { return waited_; }
  /// Memory that all batches take.
  [[nodiscard]] um::Bytes bytes() const;

 private:
  // A batch that is loaded or being loaded.
  struct Slot {
    Batch batch;
    std::uint64_t step = 0;
    std::size_t begun = 0;  // images that a thread has taken
    std::size_t done = 0;
    bool is_mixed = false;         // where the loader mixes
    std::size_t failed_place = 0;  // the first one that failed, if any
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
  [[nodiscard]] std::size_t label_numbers() const;  // per image of a batch
  [[nodiscard]] bool is_loaded() const;             // whether the next batch is
  // Returns whether all images are done, or after a failure all images that had been begun.
  [[nodiscard]] bool is_whole(const Slot& slot) const;

  const Dataset& dataset_;
  const ByteImages* bytes_;  // null where batches have floats
  std::size_t batch_;        // images that are loaded at a time
  std::size_t part_;         // images of them that next() returns
  BatchOrder order_;
  std::optional<std::uint64_t> steps_in_epoch_;  // nothing: there is only one epoch
  MixOptions mixing_;
  std::uint64_t seed_ = 0;   // for mixing
  std::vector<Slot> slots_;  // fixed: no slot moves or reallocates
  Slot* current_;            // what next() returned last
  um::Nanoseconds waited_{};

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::uint64_t next_step_;  // the next one to begin
  std::vector<Slot*> spare_;
  std::deque<Slot*> begun_;  // in order of steps; threads take images from the last one
  bool has_failed_ = false;  // threads take no more images

  std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace spillway

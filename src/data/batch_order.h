#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

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

}  // namespace spillway

#include "src/data/batch_order.h"

#include <string>
#include <utility>

#include "src/data/random/permutation.h"
#include "um/error.h"

namespace spillway {

void expect_batch(std::size_t size, std::size_t batch) {
  um::expects(batch >= 1, "a batch of at least one image");
  if (size >= batch) return;
  throw um::Error{"the data set has " + std::to_string(size) +
                  " images to learn from, too few for a batch of " + std::to_string(batch) +
                  "; use a smaller --batch"};
}

std::uint64_t steps_per_epoch(std::size_t size, std::size_t batch) {
  expect_batch(size, batch);
  return size / batch;  // NOLINT(clang-analyzer-core.DivideZero): expects() throws
}

std::uint64_t evaluation_steps(std::size_t size, std::size_t batch) {
  um::expects(batch >= 1, "a batch of at least one image");
  return (size + batch - 1) / batch;  // NOLINT(clang-analyzer-core.DivideZero): as above
}

BatchOrder training_order(std::size_t size, std::size_t batch, std::uint64_t seed) {
  const std::uint64_t steps = steps_per_epoch(size, batch);
  return [=](std::uint64_t step, std::size_t place) -> std::optional<std::size_t> {
    const Permutation shuffle{size, seed, step / steps};
    return shuffle((step % steps) * batch + place);
  };
}

BatchOrder part_of(BatchOrder order, const BatchPart& part) {
  return [order = std::move(order), first = part.first](std::uint64_t step, std::size_t place) {
    return order(step, first + place);
  };
}

BatchOrder evaluation_order(std::size_t size, std::size_t batch) {
  um::expects(batch >= 1, "a batch of at least one image");
  return [=](std::uint64_t step, std::size_t place) -> std::optional<std::size_t> {
    if (step >= evaluation_steps(size, batch)) return std::nullopt;
    const std::uint64_t index = step * batch + place;
    return index < size ? std::optional{index} : std::nullopt;
  };
}

}  // namespace spillway

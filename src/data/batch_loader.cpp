#include "src/data/batch_loader.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "um/error.h"

namespace spillway {

BatchLoader::BatchLoader(const Dataset& dataset, std::size_t batch, std::uint64_t seed,
                         std::uint64_t first_step, std::size_t prefetch_depth,
                         std::pmr::memory_resource& memory)
    : BatchLoader{dataset,    batch,          training_order(dataset.size(), batch, seed),
                  first_step, prefetch_depth, memory} {}

BatchLoader::BatchLoader(const Dataset& dataset, std::size_t batch, BatchOrder order,
                         std::uint64_t first_step, std::size_t prefetch_depth,
                         std::pmr::memory_resource& memory)
    : dataset_{dataset}, batch_{batch}, order_{std::move(order)} {
  um::expects(batch >= 1 && prefetch_depth >= 1, "a batch, and room to load one ahead");
  batches_.reserve(1 + prefetch_depth);
  for (std::size_t i = 0; i < 1 + prefetch_depth; ++i) {
    batches_.push_back(empty_batch(memory));
    if (i > 0) spare_.push_back(&batches_[i]);
  }
  current_ = &batches_[0];  // nobody has got it
  thread_ =
      std::jthread{[this, first_step](const std::stop_token& stop) { load(stop, first_step); }};
}

const Batch& BatchLoader::next() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return !loaded_.empty() || failure_; });
  if (loaded_.empty()) std::rethrow_exception(failure_);
  spare_.push_back(std::exchange(current_, loaded_.front()));
  loaded_.pop_front();
  changed_.notify_all();
  return *current_;
}

const Batch* BatchLoader::peek() {
  const std::lock_guard lock{mutex_};
  return loaded_.empty() ? nullptr : loaded_.front();
}

void BatchLoader::load(const std::stop_token& stop, std::uint64_t first_step) {
  try {
    for (std::uint64_t step = first_step;; ++step) {
      Batch* const batch = wait_for_spare(stop);
      if (batch == nullptr || !fill(stop, step, *batch)) return;
      const std::lock_guard lock{mutex_};
      loaded_.push_back(batch);
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock{mutex_};
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

// Null when the loader is being destroyed.
Batch* BatchLoader::wait_for_spare(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  if (!changed_.wait(lock, stop, [&] { return !spare_.empty(); })) return nullptr;
  Batch* const spare = spare_.back();
  spare_.pop_back();
  return spare;
}

// False when the loader is being destroyed.
bool BatchLoader::fill(const std::stop_token& stop, std::uint64_t step, Batch& batch) const {
  static std::atomic<std::uint64_t> filled = 0;
  batch.number = ++filled;
  const std::size_t elements = dataset_.image().elements();
  batch.images.resize(batch_ * elements);
  const std::size_t labels = labels_each(dataset_);
  batch.labels.resize(batch_ * labels);
  for (std::size_t place = 0; place < batch_; ++place) {
    if (stop.stop_requested()) return false;
    const std::span<float> image = std::span{batch.images}.subspan(place * elements, elements);
    const std::optional<std::size_t> index = order_(step, place);
    const std::span<std::int32_t> label = std::span{batch.labels}.subspan(place * labels, labels);
    if (index) {
      dataset_.read(*index, image);
      dataset_.labels(*index, label);
    } else {
      std::ranges::fill(image, 0.0F);
      std::ranges::fill(label, -1);
    }
  }
  return true;
}

}  // namespace spillway

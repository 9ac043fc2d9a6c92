#include "src/io/data/batch_loader.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "src/io/random.h"
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

BatchOrder evaluation_order(std::size_t size, std::size_t batch) {
  um::expects(batch >= 1, "a batch of at least one image");
  return [=](std::uint64_t step, std::size_t place) -> std::optional<std::size_t> {
    if (step >= evaluation_steps(size, batch)) return std::nullopt;
    const std::uint64_t index = step * batch + place;
    return index < size ? std::optional{index} : std::nullopt;
  };
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostUsualThreads = 16;

BatchPart part_or_all(const LoaderOptions& options, std::size_t batch) {
  return options.part.value_or(BatchPart{.first = 0, .count = batch});
}

// A part's first image is mixed with the one before it, which is loaded behind the last.
std::size_t loaded_images(const LoaderOptions& options, std::size_t batch) {
  const std::size_t count = part_or_all(options, batch).count;
  return count + (options.mixing.is_on() && count < batch ? 1 : 0);
}

// The image before the first of a batch is the last one.
BatchOrder order_of_part(BatchOrder order, const BatchPart& part, std::size_t batch) {
  const std::size_t before = part.first == 0 ? batch - 1 : part.first - 1;
  return [order = std::move(order), part, before](std::uint64_t step, std::size_t place) {
    return order(step, place < part.count ? part.first + place : before);
  };
}

}  // namespace

bool can_load_bytes(const Dataset& dataset, const MixOptions& mixing) {
  return !mixing.is_on() && dataset.as_bytes() != nullptr;
}

std::size_t usual_loader_threads() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {  // too many for the set
    return kMostUsualThreads;
  }
  return std::clamp<std::size_t>(static_cast<std::size_t>(CPU_COUNT(&allowed)), 1,
                                 kMostUsualThreads);
}

BatchLoader::BatchLoader(const Dataset& dataset, std::size_t batch, std::uint64_t seed,
                         std::uint64_t first_step, const LoaderOptions& options)
    : BatchLoader{dataset,
                  loaded_images(options, batch),
                  order_of_part(training_order(dataset.size(), batch, seed),
                                part_or_all(options, batch), batch),
                  first_step,
                  steps_per_epoch(dataset.size(), batch),
                  options,
                  seed} {}

BatchLoader::BatchLoader(const Dataset& dataset, std::size_t batch, BatchOrder order,
                         const LoaderOptions& options)
    : BatchLoader{dataset, batch, std::move(order), 0, std::nullopt, options, 0} {}

BatchLoader::BatchLoader(const Dataset& dataset, std::size_t batch, BatchOrder order,
                         std::uint64_t first_step, std::optional<std::uint64_t> steps_in_epoch,
                         const LoaderOptions& options, std::uint64_t seed)
    : dataset_{dataset},
      bytes_{options.has_bytes ? dataset.as_bytes() : nullptr},
      batch_{batch},
      part_{options.part ? options.part->count : batch},
      order_{std::move(order)},
      steps_in_epoch_{steps_in_epoch},
      mixing_{options.mixing},
      seed_{seed},
      next_step_{first_step} {
  um::expects(batch >= 1 && options.threads >= 1 && options.prefetch_depth >= 1,
              "a batch, threads, and room to load one ahead");
  um::expects(!mixing_.is_on() || (steps_in_epoch && !dataset.labels_pixels()),
              "batches to learn from, one label an image, where they are mixed");
  um::expects(!options.has_bytes || can_load_bytes(dataset, mixing_), "images that are bytes");
  slots_.reserve(1 + options.prefetch_depth);
  for (std::size_t i = 0; i < 1 + options.prefetch_depth; ++i) {
    slots_.push_back({.batch = empty_batch(*options.memory)});
    if (i > 0) spare_.push_back(&slots_[i]);
  }
  current_ = &slots_[0];  // not returned by next() yet
  threads_.reserve(options.threads);
  for (std::size_t i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { load(stop); });
  }
}

BatchLoader::~BatchLoader() {
  for (std::jthread& thread : threads_)
    thread.request_stop();  // all of them, before the first is joined
}

const Batch& BatchLoader::next() {
  const Clock::time_point begin = Clock::now();
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return is_loaded(); });
  waited_ = Clock::now() - begin;
  Slot* const slot = begun_.front();
  if (slot->failure) std::rethrow_exception(slot->failure);
  begun_.pop_front();
  spare_.push_back(std::exchange(current_, slot));
  changed_.notify_all();
  return slot->batch;
}

const Batch* BatchLoader::peek() {
  const std::lock_guard lock{mutex_};
  return is_loaded() && !begun_.front()->failure ? &begun_.front()->batch : nullptr;
}

um::Bytes BatchLoader::bytes() const {
  const std::size_t each = dataset_.image().elements() * (bytes_ != nullptr ? 1 : sizeof(float)) +
                           label_numbers() * sizeof(std::int32_t);
  return um::Bytes{slots_.size() * batch_ * each};
}

bool BatchLoader::is_loaded() const { return !begun_.empty() && is_whole(*begun_.front()); }

bool BatchLoader::is_whole(const Slot& slot) const {
  if (slot.failure) return slot.done == slot.begun;
  return slot.done == batch_ && (slot.is_mixed || !mixing_.is_on());
}

std::size_t BatchLoader::label_numbers() const {
  return mixing_.is_on() ? kMixedLabelNumbers : labels_each(dataset_);
}

void BatchLoader::load(const std::stop_token& stop) {
  for (Image image = take(stop); image.slot != nullptr; image = take(stop)) {
    finish(image, read(image));
  }
}

// Takes the next image to load. Returns none when the loader is being destroyed or an image has
// failed.
BatchLoader::Image BatchLoader::take(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  const auto has_images = [&] { return !begun_.empty() && begun_.back()->begun < batch_; };
  const bool goes_on =
      changed_.wait(lock, stop, [&] { return has_failed_ || has_images() || !spare_.empty(); });
  if (!goes_on || has_failed_ || stop.stop_requested()) return {};
  if (!has_images()) {
    Slot* const slot = spare_.back();
    spare_.pop_back();
    begun_.push_back(slot);
    changed_.notify_all();
    try {
      open(*slot);
    } catch (...) {  // out of memory: next() throws it
      slot->failure = std::current_exception();
      has_failed_ = true;
      return {};
    }
  }
  Slot* const slot = begun_.back();
  return {.slot = slot, .place = slot->begun++};
}

void BatchLoader::open(Slot& slot) {
  slot.step = next_step_++;
  slot.begun = 0;
  slot.done = 0;
  static std::atomic<std::uint64_t> last_number = 0;
  slot.batch.number = ++last_number;
  const std::size_t elements = batch_ * dataset_.image().elements();
  if (bytes_ != nullptr) {
    slot.batch.bytes.resize(elements);
    slot.batch.byte_numbers = bytes_->byte_numbers();
  } else {
    slot.batch.images.resize(elements);
  }
  slot.batch.labels.resize(batch_ * label_numbers());
  slot.batch.is_mixed = mixing_.is_on();
  slot.is_mixed = false;
}

// Reads one image. Returns what went wrong, or null.
std::exception_ptr BatchLoader::read(const Image& image) const {
  const auto& [slot, place] = image;
  const auto part_of = [&, at = place](auto& all) {
    const std::size_t each = all.size() / batch_;
    return std::span{all}.subspan(at * each, each);
  };
  const std::span<float> pixels = part_of(slot->batch.images);
  const std::span<std::uint8_t> bytes = part_of(slot->batch.bytes);
  const std::span<std::int32_t> labels = part_of(slot->batch.labels).first(labels_each(dataset_));
  try {
    if (const std::optional<std::size_t> index = order_(slot->step, place)) {
      const std::uint64_t epoch = steps_in_epoch_ ? slot->step / *steps_in_epoch_ : 0;
      if (bytes_ != nullptr) {
        bytes_->show_bytes(*index, epoch, bytes, labels);
      } else {
        dataset_.show(*index, epoch, pixels, labels);
      }
    } else {
      std::ranges::fill(pixels, 0.0F);
      std::ranges::fill(bytes, std::uint8_t{0});
      std::ranges::fill(labels, -1);
    }
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void BatchLoader::finish(const Image& image, const std::exception_ptr& failure) {
  std::unique_lock lock{mutex_};
  Slot& slot = *image.slot;
  ++slot.done;
  if (failure) {
    has_failed_ = true;
    if (!slot.failure || image.place < slot.failed_place) {
      slot.failure = failure;
      slot.failed_place = image.place;
    }
  }
  if (slot.done == batch_ && !slot.failure && mixing_.is_on()) {
    lock.unlock();  // no other thread uses the batch
    mix(slot);
    lock.lock();
    slot.is_mixed = true;
  }
  if (is_whole(slot) || failure) changed_.notify_all();
}

void BatchLoader::mix(Slot& slot) const {
  constexpr std::uint64_t kMixing = 0x6D6978;  // separates these random draws
  const Random random{seed_, slot.step / *steps_in_epoch_, slot.step % *steps_in_epoch_, kMixing};
  BatchMix{mixing_, dataset_.image(), random}.apply(slot.batch.images, slot.batch.labels);
  slot.batch.images.resize(part_ * dataset_.image().elements());
  slot.batch.labels.resize(part_ * label_numbers());
}

}  // namespace spillway

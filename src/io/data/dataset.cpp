#include "src/io/data/dataset.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "src/io/data/batch_loader.h"
#include "src/io/file_digest.h"
#include "um/error.h"

namespace spillway {
namespace {

// Hands out numbers to several threads, one after the other.
class SharedNumbers {
 public:
  SharedNumbers(std::size_t count, const LookOptions& options,
                const std::function<void(std::size_t)>& look)
      : count_{count}, options_{options}, look_{look} {}

  void work() noexcept {
    for (std::size_t i = next_++; i < count_ && !options_.stop.stop_requested(); i = next_++) {
      try {
        look_(i);
      } catch (...) {
        const std::lock_guard lock{mutex_};
        if (!failure_) failure_ = std::current_exception();
        next_ = count_;
      }
    }
    const std::lock_guard lock{mutex_};
    ++ended_;
    changed_.notify_all();
  }

  // Returns when `threads` threads have ended.
  void wait(std::size_t threads) {
    constexpr std::chrono::milliseconds kMoment{200};
    std::unique_lock lock{mutex_};
    while (!changed_.wait_for(lock, kMoment, [&] { return ended_ == threads; })) {
      if (!options_.on_progress) continue;
      lock.unlock();
      options_.on_progress(static_cast<double>(std::min(next_.load(), count_)) /
                           static_cast<double>(count_));
      lock.lock();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::size_t count_;
  const LookOptions& options_;
  const std::function<void(std::size_t)>& look_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t ended_ = 0;
  std::exception_ptr failure_;  // the first one
};

class FirstSamples final : public Dataset {
 public:
  FirstSamples(std::unique_ptr<Dataset> whole, std::size_t count)
      : whole_{std::move(whole)}, count_{count} {}

  [[nodiscard]] std::string name() const override {
    return "the first " + std::to_string(count_) + " of " + whole_->name();
  }
  [[nodiscard]] nets::Shape image() const override { return whole_->image(); }
  [[nodiscard]] std::size_t classes() const override { return whole_->classes(); }
  [[nodiscard]] std::size_t size() const override { return count_; }
  void read(std::size_t index, std::span<float> image) const override {
    whole_->read(index, image);
  }
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return whole_->label(index);
  }
  [[nodiscard]] bool labels_pixels() const override { return whole_->labels_pixels(); }
  void labels(std::size_t index, std::span<std::int32_t> labels) const override {
    whole_->labels(index, labels);
  }
  void show(std::size_t index, std::uint64_t epoch, std::span<float> image,
            std::span<std::int32_t> labels) const override {
    whole_->show(index, epoch, image, labels);
  }
  void look(std::size_t index, BrokenFiles& found) const override { whole_->look(index, found); }
  [[nodiscard]] const ByteImages* as_bytes() const override { return whole_->as_bytes(); }
  [[nodiscard]] std::string content_sha256() const override {
    return sha256_of("first " + std::to_string(count_) + ": " + whole_->content_sha256());
  }

 private:
  std::unique_ptr<Dataset> whole_;
  std::size_t count_;
};

}  // namespace

std::string Dataset::content_sha256() const {
  Sha256 digest;
  std::vector<float> pixels(image().elements());
  std::vector<std::int32_t> numbers(labels_each(*this));
  for (std::size_t i = 0; i < size(); ++i) {
    read(i, pixels);
    labels(i, numbers);
    digest.update(std::as_bytes(std::span{pixels}));
    digest.update(std::as_bytes(std::span{numbers}));
  }
  return digest.hex();
}

std::string content_sha256(const DatasetPair& data) {
  return sha256_of("train " + data.train->content_sha256() + ", test " +
                   data.test->content_sha256());
}

void look_at_each(std::size_t count, const LookOptions& options,
                  const std::function<void(std::size_t)>& look) {
  const std::size_t wanted = std::min(count, usual_loader_threads());
  SharedNumbers numbers{count, options, look};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < wanted; ++i) threads.emplace_back([&numbers] { numbers.work(); });
  numbers.wait(threads.size());
}

void look_at_files(const DatasetPair& data, const LookedAt& sets, const LookOptions& options,
                   BrokenFiles& found) {
  const std::size_t learned = sets.train ? data.train->size() : 0;
  const std::size_t tested = sets.test ? data.test->size() : 0;
  look_at_each(learned + tested, options, [&](std::size_t i) {
    if (i < learned) {
      data.train->look(i, found);
    } else {
      data.test->look(i - learned, found);
    }
  });
}

void expect_whole_files(const DatasetPair& data, const LookedAt& sets, const LookOptions& options) {
  if (!data.broken || data.broken->rule() == OnBroken::kSkip) return;
  BrokenFiles found{OnBroken::kSkip};
  look_at_files(data, sets, options, found);
  found.expect_none();
}

Objective objective_of(const nets::Network& network) {
  const bool sees_all = std::ranges::any_of(network.nodes, [](const nets::Node& node) {
    const auto* const attention = std::get_if<nets::Attention>(&node.layer);
    return attention != nullptr && !attention->causal;
  });
  return sees_all ? Objective::kMaskedTokens : Objective::kNextToken;
}

std::unique_ptr<Dataset> first_samples(std::unique_ptr<Dataset> whole, std::size_t count) {
  if (count <= whole->size()) return std::make_unique<FirstSamples>(std::move(whole), count);
  throw um::Error{"there are only " + std::to_string(whole->size()) +
                  " samples to learn from, not " + std::to_string(count) +
                  "; give a smaller --train-samples"};
}

}  // namespace spillway

#include "src/data/dataset.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "src/data/batch_loader.h"
#include "src/files/file_digest.h"
#include "src/files/sha256.h"

namespace spillway {
namespace {

// Numbers that several threads take one after the other.
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

  // Returns when so many threads have ended.
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

}  // namespace spillway

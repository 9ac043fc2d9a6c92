#include "src/ranks/thread_communicator.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "src/ranks/rank_names.h"
#include "um/error.h"

namespace spillway {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

/// State that the threads share: one message at a time per pair of ranks. The receiver copies it
/// from the sender's memory while the sender waits.
class ThreadRanks::Exchange {
 public:
  Exchange(const std::vector<std::string>& nodes, std::chrono::milliseconds time_limit)
      : nodes_{nodes}, time_limit_{time_limit}, messages_(nodes.size() * nodes.size()) {}

  void exchange(std::size_t rank, SentPieces sends, ReceivedPieces receives) {
    std::unique_lock lock{mutex_};
    refuse_what_is_over();
    for (std::size_t to = 0; to < nodes_.size(); ++to) {
      if (to != rank) message(rank, to) = {.bytes = sends[to], .stage = Stage::kSent};
    }
    changed_.notify_all();
    std::vector<bool> has_come(nodes_.size());
    has_come[rank] = true;
    auto last = Clock::now();
    while (!all_moved(rank, has_come)) {
      if (receive_what_came(lock, rank, receives, has_come)) {
        last = Clock::now();
        continue;
      }
      const bool in_time = changed_.wait_until(lock, last + time_limit_) != std::cv_status::timeout;
      if (over_.empty() && !in_time && !has_news(rank, has_come)) {
        over_ = silence(silent(rank, has_come), nodes_, time_limit_);
        changed_.notify_all();
      }
      if (!over_.empty()) leave(lock, rank);
    }
  }

  void abort(std::size_t rank, std::string_view sentence) {
    const std::array<std::size_t, 1> own{rank};
    const std::lock_guard lock{mutex_};
    if (over_.empty()) over_ = rank_names(own, nodes_) + " ended: " + std::string{sentence};
    changed_.notify_all();
  }

 private:
  enum class Stage { kNone, kSent, kCopied };
  struct Message {
    std::span<const std::byte> bytes;
    Stage stage = Stage::kNone;
  };

  Message& message(std::size_t from, std::size_t to) {
    return messages_[from * nodes_.size() + to];
  }

  void refuse_what_is_over() const {
    if (!over_.empty()) throw um::Error{over_};
  }

  // Returns whether `rank` has received all its messages and all that it sent have been taken.
  bool all_moved(std::size_t rank, const std::vector<bool>& has_come) {
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      if (!has_come[other] || message(rank, other).stage != Stage::kNone) return false;
    }
    return true;
  }

  bool has_news(std::size_t rank, const std::vector<bool>& has_come) {
    for (std::size_t from = 0; from < nodes_.size(); ++from) {
      if (!has_come[from] && message(from, rank).stage == Stage::kSent) return true;
    }
    return all_moved(rank, has_come);
  }

  // Receives messages that have arrived; returns whether there were any. Unlocks while it copies.
  bool receive_what_came(std::unique_lock<std::mutex>& lock, std::size_t rank,
                         ReceivedPieces receives, std::vector<bool>& has_come) {
    bool any = false;
    for (std::size_t from = 0; from < nodes_.size(); ++from) {
      Message& sent = message(from, rank);
      if (has_come[from] || sent.stage != Stage::kSent) continue;
      const bool fits = sent.bytes.size() == receives[from].size();
      if (fits) {
        sent.stage = Stage::kCopied;
        lock.unlock();
        std::copy(sent.bytes.begin(), sent.bytes.end(), receives[from].begin());
        lock.lock();
      }
      sent.stage = Stage::kNone;
      changed_.notify_all();
      if (!fits) withdraw(lock, rank);
      um::expects(fits, "a message of the size that its receiver expects");
      has_come[from] = true;
      any = true;
    }
    return any;
  }

  std::vector<std::size_t> silent(std::size_t rank, const std::vector<bool>& has_come) {
    std::vector<std::size_t> ranks;
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      if (!has_come[other] || message(rank, other).stage != Stage::kNone) ranks.push_back(other);
    }
    return ranks;
  }

  // Withdraws the messages of rank `rank`, so that no other thread reads its memory.
  void withdraw(std::unique_lock<std::mutex>& lock, std::size_t rank) {
    for (std::size_t to = 0; to < nodes_.size(); ++to) {
      changed_.wait(lock, [&] { return message(rank, to).stage != Stage::kCopied; });
      message(rank, to).stage = Stage::kNone;
    }
  }

  [[noreturn]] void leave(std::unique_lock<std::mutex>& lock, std::size_t rank) {
    withdraw(lock, rank);
    throw um::Error{over_};
  }

  const std::vector<std::string>& nodes_;
  std::chrono::milliseconds time_limit_;
  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::vector<Message> messages_;  // from × to
  std::string over_;               // why calls cannot work any more; empty: they can
};

/// One thread's rank.
class ThreadRanks::End final : public Communicator {
 public:
  End(std::vector<std::string> nodes, std::size_t rank, Exchange& exchange)
      : Communicator{std::move(nodes), rank}, exchange_{exchange} {}

  void exchange(SentPieces sends, ReceivedPieces receives) override {
    um::expects(sends.size() == size() && receives.size() == size(), "a piece for each rank");
    um::expects(sends[rank()].size() == receives[rank()].size(), "what it sends to itself fits");
    exchange_.exchange(rank(), sends, receives);
    std::copy(sends[rank()].begin(), sends[rank()].end(), receives[rank()].begin());
  }

  // Each rank sums one part of the numbers, in order of ranks.
  void sum(std::span<float> numbers) override {
    const auto part = [&](std::size_t r) {
      const std::size_t first = numbers.size() * r / size();
      return numbers.subspan(first, numbers.size() * (r + 1) / size() - first);
    };
    const std::span<float> own = part(rank());
    std::vector<float> received(own.size() * size());
    std::vector<std::span<const std::byte>> sends;
    std::vector<std::span<std::byte>> receives;
    std::vector<std::span<std::byte>> parts;
    for (std::size_t r = 0; r < size(); ++r) {
      parts.push_back(std::as_writable_bytes(part(r)));
      sends.emplace_back(parts.back());
      receives.push_back(
          std::as_writable_bytes(std::span{received}.subspan(r * own.size(), own.size())));
    }
    exchange(sends, receives);
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] = received[i];
      for (std::size_t r = 1; r < size(); ++r) own[i] += received[r * own.size() + i];
    }
    all_gather(*this, parts);
  }

  [[nodiscard]] std::string library() const override { return size() > 1 ? "threads" : "none"; }

  [[noreturn]] void abort(std::string_view sentence) override {
    exchange_.abort(rank(), sentence);
    throw um::Error{sentence};
  }

 private:
  Exchange& exchange_;
};

ThreadRanks::ThreadRanks(std::size_t ranks, const CommunicatorOptions& options)
    : ThreadRanks{std::vector<std::string>(ranks, self_communicator().node()), options} {}

ThreadRanks::ThreadRanks(std::vector<std::string> nodes, const CommunicatorOptions& options)
    : nodes_{std::move(nodes)}, exchange_{std::make_unique<Exchange>(nodes_, options.time_limit)} {
  um::expects(!nodes_.empty(), "at least one rank");
}

ThreadRanks::~ThreadRanks() = default;

std::unique_ptr<Communicator> ThreadRanks::end(std::size_t rank) {
  return std::make_unique<End>(nodes_, rank, *exchange_);
}

}  // namespace spillway

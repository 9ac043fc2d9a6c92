#include <algorithm>
#include <random>
#include <span>

#include "tools/bench/dropin_kernels/kernel.h"

namespace spillway::bench {
namespace {

constexpr std::size_t kChunk = (1U << 20U) / sizeof(std::uint64_t);  // numbers of a touch
constexpr std::size_t kRun = 8 * kChunk;                             // of a run that is sorted

class Sort final : public Kernel {
 public:
  Sort(Memory& memory, std::size_t bytes)
      : memory_{memory},
        count_{bytes / 2 / sizeof(std::uint64_t) / kRun * kRun},
        from_{memory.array<std::uint64_t>(count_)},
        to_{memory.array<std::uint64_t>(count_)} {}

  void iterate() override {
    for (std::size_t at = 0; at < count_; at += kRun) {
      for (std::size_t i = 0; i < kRun; i += kChunk) write(from_ + at + i);
      for (std::uint64_t& number : std::span{from_ + at, kRun}) number = random_();
      std::sort(from_ + at, from_ + at + kRun);
    }
    const std::uint64_t* const first = from_;
    for (std::size_t run = kRun; run < count_; run *= 2) {
      merge_runs(run);
      std::swap(from_, to_);
    }
    checksum_ = 0;
    for (std::size_t i = 0; i < count_; i += count_ / 64) checksum_ = 31 * checksum_ + from_[i];
    // The next iteration begins in the same array.
    if (from_ != first) std::swap(from_, to_);
  }
  [[nodiscard]] std::uint64_t checksum() const override { return checksum_; }

 private:
  void read(const std::uint64_t* chunk) { memory_.read(chunk, kChunk * sizeof(std::uint64_t)); }
  void write(const std::uint64_t* chunk) { memory_.write(chunk, kChunk * sizeof(std::uint64_t)); }

  void merge_runs(std::size_t run) {
    for (std::size_t at = 0; at < count_; at += 2 * run) {
      const std::size_t middle = std::min(count_, at + run);
      merge(at, middle, std::min(count_, at + 2 * run));
    }
  }

  // Says what it will use as if both runs were used up alike, which is nearly so.
  void merge(std::size_t at, std::size_t middle, std::size_t end) {
    std::size_t left = at;
    std::size_t right = middle;
    for (std::size_t out = at; out < end; out += kChunk) {
      const std::size_t half = (out - at) / 2 / kChunk * kChunk;
      if (at + half < middle) read(from_ + at + half);
      if (middle + half < end) read(from_ + middle + half);
      write(to_ + out);
      for (std::size_t i = out; i < out + kChunk; ++i) {
        const bool takes_left = left < middle && (right == end || from_[left] <= from_[right]);
        to_[i] = takes_left ? from_[left++] : from_[right++];
      }
    }
  }

  Memory& memory_;
  std::size_t count_;
  std::uint64_t* from_;
  std::uint64_t* to_;
  std::mt19937_64 random_{7};
  std::uint64_t checksum_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_sort(Memory& memory, std::size_t bytes) {
  return std::make_unique<Sort>(memory, bytes);
}

}  // namespace spillway::bench

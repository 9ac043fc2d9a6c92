#include "src/ranks/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "um/error.h"

namespace spillway {
namespace {

class HostNumberKernels final : public NumberKernels {
 public:
  void add(std::span<float> to, std::span<const float> numbers) const override {
    add_floats(to.data(), numbers.data(), to.size());
  }
  void copy(std::span<float> to, std::span<const float> from) const override {
    if (to.data() != from.data() && !to.empty()) {
      std::memcpy(to.data(), from.data(), to.size_bytes());
    }
  }
  void divide(std::span<float> numbers, float by) const override {
    for (float& number : numbers) number /= by;
  }
  void fill(std::span<float> numbers, float value) const override {
    std::ranges::fill(numbers, value);
  }

 private:
  static void add_floats(float* __restrict to, const float* __restrict numbers, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] += numbers[i];
  }
};

constexpr std::size_t kSentWhole = 16384;  // bytes; `root` sends these directly to each rank

constexpr std::size_t kSliceUnit = 16;  // numbers, 64 bytes: the alignment of slices

std::size_t units_of(std::size_t n) { return (n + kSliceUnit - 1) / kSliceUnit; }

std::string this_node() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this machine";
}

class SelfCommunicator final : public Communicator {
 public:
  SelfCommunicator() : Communicator{{this_node()}, 0} {}

  void exchange(SentPieces sends, ReceivedPieces receives) override {
    um::expects(sends.size() == 1 && receives.size() == 1, "a piece for each rank");
    um::expects(sends[0].size() == receives[0].size(), "what it sends to itself fits");
    std::ranges::copy(sends[0], receives[0].begin());
  }
  void sum(std::span<float> /*numbers*/) override {}
  [[nodiscard]] std::string library() const override { return "none"; }
  [[noreturn]] void abort(std::string_view sentence) override { throw um::Error{sentence}; }
};

}  // namespace

const NumberKernels& host_number_kernels() {
  static const HostNumberKernels kernels;
  return kernels;
}

Communicator::Communicator(std::vector<std::string> nodes, std::size_t rank)
    : nodes_{std::move(nodes)}, rank_{rank} {
  um::expects(rank_ < nodes_.size(), "a rank that is one of all");
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    if (nodes_[r] != nodes_[rank_]) continue;
    if (r < rank_) ++rank_on_node_;
    ++ranks_on_node_;
  }
}

Communicator& self_communicator() noexcept {
  static SelfCommunicator self;
  return self;
}

void Communicator::broadcast(std::span<std::byte> bytes, std::size_t root) {
  um::expects(root < size(), "a root that is one of the ranks");
  std::vector<std::span<const std::byte>> sends(size());
  std::vector<std::span<std::byte>> receives(size());
  if (bytes.size() <= kSentWhole) {
    if (rank_ == root) std::fill(sends.begin(), sends.end(), std::span<const std::byte>{bytes});
    sends[rank_] = {};
    if (rank_ != root) receives[root] = bytes;
    exchange(sends, receives);
    return;
  }
  std::vector<std::span<std::byte>> pieces;  // root sends each rank one to pass on
  for (std::size_t r = 0; r < size(); ++r) {
    const std::size_t first = bytes.size() / size() * r + std::min(r, bytes.size() % size());
    const std::size_t count = bytes.size() / size() + (r < bytes.size() % size() ? 1 : 0);
    pieces.push_back(bytes.subspan(first, count));
    if (rank_ == root && r != root) sends[r] = pieces[r];
  }
  if (rank_ != root) receives[root] = pieces[rank_];
  exchange(sends, receives);
  all_gather(*this, pieces);
}

void all_gather(Communicator& communicator, ReceivedPieces pieces) {
  um::expects(pieces.size() == communicator.size(), "a piece of each rank");
  std::vector<std::span<const std::byte>> sends(pieces.size(), pieces[communicator.rank()]);
  std::vector<std::span<std::byte>> receives(pieces.begin(), pieces.end());
  sends[communicator.rank()] = {};  // already in place
  receives[communicator.rank()] = {};
  communicator.exchange(sends, receives);
}

void end_all(Communicator& communicator, std::string_view sentence) {
  constexpr std::chrono::seconds kFirstSays{2};
  if (communicator.rank() > 0) std::this_thread::sleep_for(kFirstSays);
  communicator.abort(sentence);
  std::terminate();  // unreachable; g++ 12 does not always see that for a virtual function
}

void wait_for_all(Communicator& communicator) {
  communicator.exchange(std::vector<std::span<const std::byte>>(communicator.size()),
                        std::vector<std::span<std::byte>>(communicator.size()));
}

NumberSlice slice_of_rank(std::size_t rank, std::size_t ranks, std::size_t n) {
  um::expects(rank < ranks, "a rank that is one of all");
  const std::size_t units = units_of(n);
  const std::size_t first = std::min(n, kSliceUnit * (units * rank / ranks));
  return {first, std::min(n, kSliceUnit * (units * (rank + 1) / ranks)) - first};
}

std::size_t largest_slice(std::size_t ranks, std::size_t n) {
  return (units_of(n) + ranks - 1) / ranks * kSliceUnit;
}

}  // namespace spillway

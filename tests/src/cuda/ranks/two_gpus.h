#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/cuda/ranks/nccl_communicator.h"
#include "tests/src/cuda/ranks/nccl_ranks.h"
#include "tests/src/cuda/ranks/stand_in_nccl.h"
#include "tests/src/cuda/ranks/waiting_gpus.h"
#include "um/hints.h"

namespace spillway::testing {

inline constexpr std::size_t kRanks = 2;

/// Number kernels as on a GPU: the driver is told which memory they use.
class DeclaredNumberKernels final : public NumberKernels {
 public:
  DeclaredNumberKernels(um::RecordedGpu& gpu, const cuda::ExchangeStream& stream)
      : gpu_{gpu}, stream_{stream} {}
  void add(std::span<float> to, std::span<const float> numbers) const override {
    launch("add", to, numbers, [=] { host_number_kernels().add(to, numbers); });
  }
  void copy(std::span<float> to, std::span<const float> from) const override {
    launch("copy", to, from, [=] { host_number_kernels().copy(to, from); });
  }
  void divide(std::span<float> numbers, float by) const override {
    launch("divide", numbers, {}, [=] { host_number_kernels().divide(numbers, by); });
  }
  void fill(std::span<float> numbers, float value) const override {
    launch("fill", numbers, {}, [=] { host_number_kernels().fill(numbers, value); });
  }

 private:
  void launch(const std::string& name, std::span<float> written, std::span<const float> read,
              std::function<void()> act) const {
    std::vector<um::Use> uses{
        {.range = std::as_writable_bytes(written), .access = um::Access::kReadWrite}};
    if (!read.empty() && read.data() != written.data()) {
      auto* const address = reinterpret_cast<std::byte*>(const_cast<float*>(read.data()));
      uses.push_back({.range = {address, read.size_bytes()}, .access = um::Access::kRead});
    }
    gpu_.launch(stream_.enter(), name, uses, std::move(act));
  }

  um::RecordedGpu& gpu_;
  const cuda::ExchangeStream& stream_;
};

/// One exchange of a rank.
struct Group {
  std::string line;  ///< "send 8 to 1, receive 8 from 1"
  std::string stream;
  friend bool operator==(const Group&, const Group&) = default;
};

/// Describes the exchange in words.
[[nodiscard]] inline std::string line_of(const NcclWork& work) {
  std::string line;
  for (const NcclPiece& piece : work.pieces) {
    const std::string size = std::to_string(piece.bytes.size());
    line += line.empty() ? "" : ", ";
    if (piece.kind == NcclPiece::Kind::kSum) {
      line += "sum " + size;
    } else {
      line += (piece.kind == NcclPiece::Kind::kSend ? "send " : "receive ") + size +
              (piece.kind == NcclPiece::Kind::kSend ? " to " : " from ") +
              std::to_string(piece.peer);
    }
  }
  return line;
}

/// Gives exchanges to the streams of the ranks' GPUs and records them.
class Exchanges {
 public:
  explicit Exchanges(std::array<WatchedGpu*, kRanks> gpus) : gpus_{gpus} {
    stand_in().ask = [this](const NcclWork& work) { note(work); };
    stand_in().give = [this](const NcclWork& work) { give(work); };
  }
  Exchanges(const Exchanges&) = delete;
  Exchanges& operator=(const Exchanges&) = delete;
  ~Exchanges() { stand_in().reset(); }

  /// Returns a rank's exchanges. Thread safety: one thread per rank.
  [[nodiscard]] const std::vector<Group>& of(std::size_t rank) const { return groups_[rank]; }
  /// Returns the number of exchanges so far.
  [[nodiscard]] std::size_t count(std::size_t rank) const { return counts_[rank]; }

 private:
  void note(const NcclWork& work) {
    const auto rank = static_cast<std::size_t>(work.rank);
    groups_[rank].push_back({.line = line_of(work), .stream = gpus_[rank]->name_of(work.stream)});
    ++counts_[rank];
  }
  void give(const NcclWork& work) {
    std::vector<um::Use> uses;
    for (const NcclPiece& piece : work.pieces) {
      const bool is_read = piece.kind == NcclPiece::Kind::kSend;
      uses.push_back(
          {.range = piece.bytes, .access = is_read ? um::Access::kRead : um::Access::kReadWrite});
    }
    gpus_[static_cast<std::size_t>(work.rank)]->launch(work.stream, "nccl: " + line_of(work), uses,
                                                       work.act);
  }

  std::array<WatchedGpu*, kRanks> gpus_;
  std::array<std::vector<Group>, kRanks> groups_;
  std::array<std::atomic<std::size_t>, kRanks> counts_{};
};

/// Joins like the plug-in, except for kernels.
[[nodiscard]] inline std::unique_ptr<Communicator> join_gpus(WatchedGpu& gpu,
                                                             Communicator& process) {
  cuda::DeviceCommunicator::Device device;
  device.stream = std::make_unique<cuda::ExchangeStream>(gpu);
  device.kernels = std::make_unique<DeclaredNumberKernels>(gpu, *device.stream);
  return std::make_unique<cuda::NcclCommunicator>(process, std::move(device), CommunicatorOptions{},
                                                  stand_in_functions());
}

}  // namespace spillway::testing

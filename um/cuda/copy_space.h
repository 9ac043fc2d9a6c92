#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "um/cuda/streams/move_queue.h"
#include "um/device.h"
#include "um/memory.h"
#include "um/options.h"

namespace spillway::um {

/// Plain device memory, pinned far memory, and per direction a stream and two threads. The
/// destructor waits for all copies.
class CudaCopySpace final : public CopySpace, private Copies {
 public:
  /// The arguments outlive this object. Throws: Error; OutOfMemory.
  CudaCopySpace(CudaApi& api, Memory& device, Memory& pinned, const CopyOptions& options);

  [[nodiscard]] Range near() override { return near_.bytes(); }
  [[nodiscard]] Copies& copies() override { return *this; }
  [[nodiscard]] Counters counters() const override;
  [[nodiscard]] std::string description() const override { return "pinned far RAM"; }

 private:
  void offload(std::span<const std::byte> near, Bytes far_offset, Completion done) override;
  void prefetch(Bytes far_offset, Range near, Completion done) override;
  [[nodiscard]] Range far() override { return far_.bytes(); }
  [[nodiscard]] FarSide* far_side() override { return &far_side_; }
  void note_copied(Bytes offloaded, Bytes prefetched) noexcept override {
    bytes_offloaded_ += offloaded.count();
    bytes_prefetched_ += prefetched.count();
  }
  void slide(std::span<const std::byte> from, std::byte* to, Range spare) override;

  [[nodiscard]] Range far(Bytes offset, std::span<const std::byte> near) const;

  CudaApi& api_;
  Block near_;
  Block far_;
  FarRange far_side_;
  StreamHandle sliding_;
  std::atomic<std::uint64_t> bytes_prefetched_{0};
  std::atomic<std::uint64_t> bytes_offloaded_{0};
  MoveQueue in_;  // last: the queues' copies use the other members
  MoveQueue out_;
};

}  // namespace spillway::um

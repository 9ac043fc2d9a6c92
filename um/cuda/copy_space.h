#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "um/cuda/streams/move_queue.h"
#include "um/device.h"
#include "um/host/far/far_store.h"
#include "um/memory.h"
#include "um/options.h"
#include "um/threads/engine.h"

namespace spillway::um {

/// The near memory of a GPU's copy spaces: plain device memory, in which content slides. Counts
/// copies.
class CudaCopyArena : public CopySpace, protected Copies {
 public:
  [[nodiscard]] Range near() override { return near_.bytes(); }
  [[nodiscard]] Copies& copies() override { return *this; }
  [[nodiscard]] Counters counters() const override;

 protected:
  /// The arguments outlive this object. Throws: Error; OutOfMemory.
  CudaCopyArena(CudaApi& api, Memory& device, Bytes size);

  void slide(std::span<const std::byte> from, std::byte* to, Range spare) override;
  void note_copied(Bytes offloaded, Bytes prefetched) noexcept override {
    bytes_offloaded_ += offloaded.count();
    bytes_prefetched_ += prefetched.count();
  }
  [[nodiscard]] CudaApi& api() const { return api_; }

 private:
  CudaApi& api_;
  Block near_;
  StreamHandle sliding_;
  std::atomic<std::uint64_t> bytes_prefetched_{0};
  std::atomic<std::uint64_t> bytes_offloaded_{0};
};

/// Far memory in pinned RAM, and per direction a stream and two threads. The destructor waits for
/// all copies.
class CudaCopySpace final : public CudaCopyArena {
 public:
  /// The arguments outlive this object. Throws: Error; OutOfMemory.
  CudaCopySpace(CudaApi& api, Memory& device, Memory& pinned, const CopyOptions& options);

  [[nodiscard]] std::string description() const override { return "pinned far RAM"; }

 private:
  void offload(std::span<const std::byte> near, Bytes far_offset, Completion done) override;
  void prefetch(Bytes far_offset, Range near, Completion done) override;
  [[nodiscard]] Range far() override { return far_.bytes(); }
  [[nodiscard]] FarSide* far_side() override { return &far_side_; }

  [[nodiscard]] Range far(Bytes offset, std::span<const std::byte> near) const;

  Block far_;
  FarRange far_side_;
  MoveQueue in_;  // last: the queues' copies use the other members
  MoveQueue out_;
};

/// Far memory in a file, and per direction a thread with a stream. Content goes through two pinned
/// pieces of RAM, so that the GPU's copies overlap with the file's. The destructor waits for all
/// copies.
class CudaFileSpace final : public CudaCopyArena {
 public:
  static constexpr Bytes kPiece = 8_MiB;
  static constexpr Bytes kPinned = 4 * kPiece;  ///< of RAM, for both directions

  /// The arguments outlive this object. Throws: Error when there can be no such file; OutOfMemory.
  CudaFileSpace(CudaApi& api, Memory& device, Memory& pinned, const CopyOptions& options);

  [[nodiscard]] std::string description() const override { return "far " + far_->description(); }

 private:
  // One direction.
  struct Lane {
    Lane(CudaApi& api, Memory& pinned, const std::string& name);

    std::array<Block, 2> pieces;
    StreamHandle stream;
  };

  void offload(std::span<const std::byte> near, Bytes far_offset, Completion done) override;
  void prefetch(Bytes far_offset, Range near, Completion done) override;
  [[nodiscard]] FarSide* far_side() override { return far_.get(); }

  void write(std::span<const std::byte> near, Bytes far_offset);
  void read(Bytes far_offset, Range near);

  std::unique_ptr<FarStore> far_;
  Lane in_;
  Lane out_;
  Engine engine_in_;  // last: their jobs use the other members
  Engine engine_out_;
};

}  // namespace spillway::um

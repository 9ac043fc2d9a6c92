#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "um/device.h"
#include "um/host/far/far_store.h"
#include "um/host/far/link.h"
#include "um/memory.h"
#include "um/options.h"
#include "um/threads/engine.h"

namespace spillway::um {

/// The RAM of this machine as near memory: in huge pages if possible, with physical memory from the
/// start, so that the first use is fast.
class HostMemory final : public Memory {
 public:
  [[nodiscard]] std::byte* allocate(Bytes size) override;
  void free(std::byte* address, Bytes size) noexcept override;
};

/// Near memory, a far store, and per direction one copy engine and one side of the link. The
/// destructor waits for all copies.
class HostCopySpace final : public CopySpace, private Copies {
 public:
  /// Throws: Error when the near memory or the far file is unavailable.
  explicit HostCopySpace(const CopyOptions& options);

  [[nodiscard]] Range near() override { return near_.bytes(); }
  [[nodiscard]] Copies& copies() override { return *this; }
  [[nodiscard]] Counters counters() const override;
  [[nodiscard]] std::string description() const override { return "far " + far_->description(); }

 private:
  void offload(std::span<const std::byte> near, Bytes far_offset, Completion done) override;
  void prefetch(Bytes far_offset, Range near, Completion done) override;
  [[nodiscard]] FarSide* far_side() override { return far_.get(); }

  HostMemory memory_;
  Block near_;
  std::unique_ptr<FarStore> far_;
  Link link_in_;
  Link link_out_;
  std::atomic<std::uint64_t> bytes_prefetched_{0};
  std::atomic<std::uint64_t> bytes_offloaded_{0};
  Engine engine_in_;  // last: their jobs use the other members until they end
  Engine engine_out_;
};

}  // namespace spillway::um

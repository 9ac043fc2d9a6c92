#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/program/step.h"
#include "um/bytes.h"

namespace spillway {

/// Places the blocks of consecutive tasks in a ring buffer. A block stays where its last task used
/// it until newer blocks overwrite it. The processor's caches then hold about what they hold in a
/// whole step: recent blocks.
class ScratchRing {
 public:
  /// A block, or scratch bytes of the task alone.
  struct Piece {
    std::optional<prefetch::DataId> block;
    um::Bytes size;
  };

  struct Place {
    std::byte* address;
    bool is_new;  ///< the block's content is lost: the bytes are undefined
  };

  explicit ScratchRing(um::Range memory) : memory_{memory} {}

  /// Places all `pieces` without overlap, each block once. Requires: their sum is not larger than
  /// the memory; sizes are multiples of the wanted alignment.
  std::vector<Place> place(std::span<const Piece> pieces);

 private:
  // A position counts bytes since the first round; the address is the position modulo the memory's
  // size.
  [[nodiscard]] std::uint64_t skip_to_fit(std::uint64_t position, um::Bytes size) const;
  [[nodiscard]] bool is_kept(const Piece& piece, std::uint64_t end) const;
  [[nodiscard]] std::uint64_t find_end(std::span<const Piece> pieces, std::uint64_t kept) const;

  um::Range memory_;
  std::uint64_t head_ = 0;  // the position of the next block
  std::unordered_map<std::uint32_t, std::uint64_t> positions_;
};

/// One launch of a step, run alone for measurement, with its operands in a scratch ring. Values do
/// not matter to the time, and training state is not touched.
class ScratchLaunch {
 public:
  /// Returns the bytes of scratch that `task` needs with `algorithm`.
  [[nodiscard]] static um::Bytes size(const Step& step, prefetch::TaskId task,
                                      std::uint32_t algorithm);

  /// To be made and used on the thread that runs kernels. All arguments must outlive it.
  ScratchLaunch(const Step& step, prefetch::TaskId task, std::uint32_t algorithm,
                const Backend& backend);

  /// Places the operands. Zeroes inputs that the ring has lost, which evicts them from the
  /// processor's caches; a GPU does so in stream order. Requires: the ring has at least size()
  /// bytes.
  void place(ScratchRing& ring);
  /// As Kernel::run(). Requires: place() has been called, and nothing else was placed since.
  void run();

 private:
  const Backend& backend_;
  std::vector<float> byte_numbers_;  // for the batch
  Batch batch_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<ScratchRing::Piece> pieces_;  // the workspace is the last
  std::vector<bool> is_read_;               // by piece
  std::vector<std::size_t> operand_pieces_;
  std::vector<std::byte*> operands_;
  std::byte* workspace_ = nullptr;
};

}  // namespace spillway

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
#include "src/step/step.h"
#include "um/bytes.h"

namespace spillway {

/// Places the blocks of one task after the other in a piece of memory, round and round: a block
/// stays where its last task found it until newer ones have overwritten it. So the processor's
/// caches hold about what they would hold in a whole step: what was just made, not what is long
/// gone.
class ScratchRing {
 public:
  /// A block, or scratch bytes of the task alone.
  struct Piece {
    std::optional<prefetch::DataId> block;
    um::Bytes size;
  };

  struct Place {
    std::byte* address;
    bool is_new;  ///< what the block held is lost: other bytes are there
  };

  explicit ScratchRing(um::Range memory) : memory_{memory} {}

  /// Where all `pieces` are, each block once, none overlapping another. Requires: together
  /// they are not larger than the memory; sizes are multiples of whatever alignment is wanted.
  std::vector<Place> place(std::span<const Piece> pieces);

 private:
  // Positions count bytes from the first round on; the address is what is left of them modulo the
  // size of the memory.
  [[nodiscard]] std::uint64_t skip_to_fit(std::uint64_t position, um::Bytes size) const;
  [[nodiscard]] bool is_kept(const Piece& piece, std::uint64_t end) const;
  [[nodiscard]] std::uint64_t find_end(std::span<const Piece> pieces, std::uint64_t kept) const;

  um::Range memory_;
  std::uint64_t head_ = 0;  // the position of the next block
  std::unordered_map<std::uint32_t, std::uint64_t> positions_;
};

/// One launch of a step that can be run by itself, to measure it, with its operands in a scratch
/// ring. Values do not matter to the time, and no training state is touched.
class ScratchLaunch {
 public:
  /// Bytes of scratch that `task` needs with its algorithm number `algorithm`.
  [[nodiscard]] static um::Bytes size(const Step& step, prefetch::TaskId task,
                                      std::uint32_t algorithm);

  /// To be made and used on the thread that runs kernels. Both must outlive it.
  ScratchLaunch(const Step& step, prefetch::TaskId task, std::uint32_t algorithm,
                const Backend& backend);

  /// Finds places for its operands; what it reads and the ring has lost becomes zero, and is not in
  /// the processor's caches then; that is done or enqueued. Requires: the ring has at least size()
  /// bytes.
  void place(ScratchRing& ring);
  /// As Kernel::run(). Requires: place() has been called, and nothing else was placed since.
  void run();

 private:
  const Backend& backend_;
  std::vector<float> byte_numbers_;  // of the batch
  Batch batch_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<ScratchRing::Piece> pieces_;  // the workspace is the last
  std::vector<bool> is_read_;               // by piece
  std::vector<std::size_t> operand_pieces_;
  std::vector<std::byte*> operands_;
  std::byte* workspace_ = nullptr;
};

}  // namespace spillway

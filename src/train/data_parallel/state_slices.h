#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "src/ops/backend.h"
#include "src/program/step.h"
#include "src/ranks/communicator.h"
#include "um/memory.h"

namespace spillway {

/// Gathers and scatters the blocks that are divided among ranks (StateBlock::divided) for rank
/// zero, which reads and writes files. Rank zero calls gather() and scatter() as it goes, a block
/// at a time, in on_rank_zero(). The others meanwhile ask for its next call, with next(), and
/// join() in. Whole blocks are in memory of rank zero alone, one at a time, and not counted in its
/// budget.
///
/// Throws: every function what Communicator throws; gather() and scatter() um::OutOfMemory. Thread
/// safety: one thread at a time.
class StateSlices {
 public:
  /// Keeps references. Whole blocks are in `memory`, where `near` exchanges them
  /// (RankOptions::between_near_memory()).
  StateSlices(Communicator& ranks, Communicator& near, um::Memory& memory)
      : ranks_{ranks}, near_{near}, memory_{memory} {}

  [[nodiscard]] bool is_rank_zero() const { return ranks_.rank() == 0; }

  /// Requires: is_rank_zero(). `parts` is where it has its slices of the block, or all of a part
  /// that is not divided; `numbers` are those of the whole block in canonical order.
  void gather(std::size_t index, const StateBlock& block, std::span<std::byte* const> parts,
              const Backend& backend, std::span<float> numbers);
  void scatter(std::size_t index, const StateBlock& block, std::span<std::byte* const> parts,
               const Backend& backend, std::span<const float> numbers);
  /// Calls `work`, which calls gather() and scatter(), on rank zero, and `follow`, which asks for
  /// these calls until there are no more, on the others. Throws: as spillway::on_rank_zero().
  void on_rank_zero(const std::function<void()>& work, const std::function<void()>& follow);

  /// A call of rank zero for a block.
  struct Call {
    std::uint64_t index = 0;
    bool gathers = false;  ///< else it scatters
  };
  /// Returns rank zero's next call on another rank; nullopt when there are no more.
  [[nodiscard]] std::optional<Call> next();
  void join(const Call& call, const StateBlock& block, std::span<std::byte* const> parts,
            const Backend& backend);

 private:
  void end();
  [[nodiscard]] std::span<float> own(std::byte* part, std::size_t floats) const;
  void exchange_part(bool gathers, std::span<float> own, std::span<float> whole);

  Communicator& ranks_;
  Communicator& near_;
  um::Memory& memory_;
};

}  // namespace spillway

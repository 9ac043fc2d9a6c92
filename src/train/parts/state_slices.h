#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "src/ops/backend.h"
#include "src/ranks/communicator.h"
#include "src/step/step.h"
#include "um/memory.h"

namespace spillway {

/// Moves the numbers of blocks of which each rank keeps a slice (StateBlock::divided) between all
/// ranks and the first one, which reads and writes files. That one calls gather() and scatter() as
/// it goes, a block at a time, in on_first(). The others meanwhile ask for what it does, with
/// next(), and join() in. Whole blocks are in memory of the first rank alone, one at a time, and
/// not counted in its budget.
///
/// Throws: every function what Communicator throws; gather() and scatter() um::OutOfMemory. Thread
/// safety: one thread at a time.
class StateSlices {
 public:
  /// Keeps references. Whole blocks are in `memory`, where `near` exchanges them
  /// (RankOptions::between_near_memory()).
  StateSlices(Communicator& ranks, Communicator& near, um::Memory& memory)
      : ranks_{ranks}, near_{near}, memory_{memory} {}

  [[nodiscard]] bool is_first() const { return ranks_.rank() == 0; }

  /// Of the first rank. `parts` is where it has its slices of the block, or all of a part that is
  /// not divided; `numbers` are those of the whole block in canonical order.
  void gather(std::size_t index, const StateBlock& block, std::span<std::byte* const> parts,
              const Backend& backend, std::span<float> numbers);
  void scatter(std::size_t index, const StateBlock& block, std::span<std::byte* const> parts,
               const Backend& backend, std::span<const float> numbers);
  /// Has the first rank do `work`, in which it calls gather() and scatter(), and the others
  /// `follow` it: ask for what it does until there is no more. Throws: as on_first_rank().
  void on_first(const std::function<void()>& work, const std::function<void()>& follow);

  /// What the first rank does with a block.
  struct Call {
    std::uint64_t index = 0;
    bool gathers = false;  ///< else it scatters
  };
  /// Of the others: nothing when the first rank has no more.
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

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/backend.h"
#include "src/safetensors.h"
#include "src/step.h"
#include "um/memory.h"

namespace spillway {

/// The numbers that outlive a step: parameters, momentum and running statistics, in one block of
/// near memory. Backend and memory must outlive it.
class State {
 public:
  /// Allocates the state blocks of `step`, a training step, and zeroes them. Throws:
  /// um::OutOfMemory.
  State(const Step& step, const Backend& backend, um::Memory& memory);

  /// Gives every block its initial values (initial_values.h); momentum is zero.
  void initialise(std::uint64_t seed);

  /// The address of each state block of `step` (the training step, or an evaluation step of the
  /// same network) by DataId; null for tensors.
  [[nodiscard]] std::vector<std::byte*> addresses(const Step& step) const;

  /// SHA-256 over all parameters and running statistics as 32-bit floats, in layer order, in the
  /// canonical order of parameter.h.
  [[nodiscard]] std::string sha256() const;

  /// All of it, in canonical order, for a checkpoint.
  [[nodiscard]] std::vector<NamedTensor> save() const;
  /// Throws: um::Error that names the tensor when `tensors` do not belong to this network.
  void load(const std::vector<NamedTensor>& tensors);

 private:
  [[nodiscard]] std::byte* at(std::size_t index) const { return block_.data() + offsets_[index]; }
  [[nodiscard]] std::vector<float> values(std::size_t index) const;

  const Backend& backend_;
  std::vector<StateBlock> blocks_;
  std::vector<std::size_t> offsets_;
  um::Block block_;
};

}  // namespace spillway

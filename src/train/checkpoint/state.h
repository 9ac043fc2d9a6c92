#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/io/safetensors.h"
#include "src/ops/backend.h"
#include "src/ops/initial_values.h"
#include "src/program/step.h"
#include "src/train/data_parallel/state_slices.h"
#include "um/bytes.h"
#include "um/hints.h"
#include "um/memory.h"

namespace spillway {

/// Calls `use` with the addresses of movable blocks of state, near meanwhile; `access` says what
/// `use` does: StepMemory::with_state().
using MovableState =
    std::function<void(std::span<const prefetch::DataId> ids, um::Access access,
                       const std::function<void(std::span<std::byte* const>)>& use)>;

/// Fills `tensor` with the numbers of the one of this name.
using TensorSource = std::function<void(const std::string& name, std::span<float> tensor)>;

/// The numbers that outlive a step: parameters, the optimizer's and running statistics. Those that
/// plans leave near are in one block of near memory; the others are wherever the steps have them.
/// Backend and memory must outlive it.
class State {
 public:
  /// Allocates the state blocks of `step`, a training step, that do not move in pages of `page`,
  /// and zeroes them. Throws: um::OutOfMemory.
  State(const Step& step, um::Bytes page, const Backend& backend, um::Memory& memory);

  /// Says how to reach what moves. Needed before anything below that touches it.
  void reach_through(MovableState movable) { movable_ = std::move(movable); }

  /// Gives every block its initial values (initial_values.h); the optimizer's are zero, and
  /// averages those of their parameters. Gamma and beta of the batch norms `zeroed` are 0.
  void initialise(std::uint64_t seed, Initialisation rule = Initialisation::kXavier,
                  std::span<const std::string> zeroed = {});

  /// Gives parameters and running statistics the numbers of `weights`, which finds those that are
  /// there in its tensors and is asked for each of
  /// weight_tensors(), for averages too; the optimizer's are zero. Throws: what `weights` does.
  void start_from(const TensorSource& weights);

  /// The address of each state block of `step` (the training step, or an evaluation step of the
  /// same network) by DataId; null for tensors and for what moves.
  [[nodiscard]] std::vector<std::byte*> addresses(const Step& step) const;

  /// Says how ranks exchange the slices of what is divided among them (StateBlock::divided), which
  /// must outlive it. Then only rank zero calls what reads or writes the optimizer's numbers:
  /// initialise(), start_from(), write(), save() and load(); all others call follow() meanwhile.
  void divide_by(StateSlices& slices) { slices_ = &slices; }
  /// Sends and receives slices until rank zero has no more calls. Throws: what Communicator throws.
  void follow();

  /// Has `change` change the numbers of each block that is not divided, in the canonical order of
  /// parameter.h.
  void change_values(const std::function<void(std::span<float> numbers)>& change);

  [[nodiscard]] bool has_averages() const;
  /// Exchanges parameters and their averages: twice leaves the bits as they were.
  void swap_averages();

  /// SHA-256 over all parameters and running statistics as 32-bit floats, in layer order, in the
  /// canonical order of parameter.h.
  [[nodiscard]] std::string sha256() const;

  /// What write() writes, in order, with the names and shapes that PyTorch gives: "conv1.weight",
  /// "conv1.bias", "conv1.momentum.weight", "conv1.exp_avg_sq.weight", "bn1.running_mean".
  [[nodiscard]] std::vector<StoredTensor> tensors() const;
  /// Writes all of it, a block at a time. Throws: um::Error when it cannot be written, or that
  /// names the tensor with a number that is not finite.
  void write(SafetensorsWriter& writer) const;
  /// A safetensors file of its own. Throws: as write() does.
  void save(const std::filesystem::path& path) const;

  /// Reads what save() wrote, a block at a time. Throws: um::Error that names the file, and the
  /// tensor that is missing or has another shape than this network's, when nothing is changed; or
  /// that has a number that is not finite.
  void load(const std::filesystem::path& path) { load(path, nullptr); }
  /// Reads the tensors whose SHA-256 is in `digests`, by name. Throws: likewise, and where a tensor
  /// has another digest or none.
  void load(const std::filesystem::path& path, const std::map<std::string, std::string>& digests) {
    load(path, &digests);
  }

 private:
  using Use = std::function<void(std::span<std::byte* const>)>;

  // Where the parts of a block are; null where it moves.
  [[nodiscard]] std::vector<std::byte*> pinned(std::size_t index) const;
  void use(std::size_t index, um::Access access, const Use& use) const;
  void import(std::size_t index, std::span<const float> numbers);
  void fill(std::size_t index, const std::string& name, const TensorSource& source);
  [[nodiscard]] std::vector<float> values(std::size_t index) const;
  void load(const std::filesystem::path& path, const std::map<std::string, std::string>* digests);

  const Backend& backend_;
  std::vector<StateBlock> blocks_;
  // By block and part: where it is in block_; nothing where it moves.
  std::vector<std::vector<std::optional<std::size_t>>> offsets_;
  um::Block block_;
  MovableState movable_;
  StateSlices* slices_ = nullptr;
};

/// The tensors that a checkpoint of a training with this state consists of, in order.
[[nodiscard]] std::vector<StoredTensor> tensors_of(std::span<const StateBlock> blocks);

/// Whether a block is of the weights: parameters, or running statistics.
[[nodiscard]] bool is_weight(StateRole role);

/// How many numbers a tensor of this shape has.
[[nodiscard]] std::size_t element_count(const std::vector<std::size_t>& shape);

/// The number in `file`, which is at `path`, of each of the tensors `wanted`. Throws: um::Error
/// that names the file, and the tensor that is missing or has another shape.
[[nodiscard]] std::vector<std::size_t> find_tensors(const SafetensorsReader& file,
                                                    const std::filesystem::path& path,
                                                    const std::vector<StoredTensor>& wanted);

/// Returns State::tensors() of a State of `step` without the optimizer's and averages.
[[nodiscard]] std::vector<StoredTensor> weight_tensors(const Step& step);

/// The State::sha256() that a State of `step` would have with the tensors of a file.
/// Throws: um::Error as State::load() does.
[[nodiscard]] std::string weights_sha256(const std::filesystem::path& path, const Step& step);

}  // namespace spillway

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nets/network.h"
#include "prefetch/gradient_exchange.h"
#include "src/ops/backend.h"
#include "src/program/micro_batches.h"
#include "src/program/step.h"
#include "um/bytes.h"

// The program of a batch is a training step that passes change, in the order of this header. Each
// feature is one pass, in passes/:
//
//   StepOptions::frozen     freeze_layers()         make_program(): the program without features
//   MicroBatches            make_program()
//   Features::division      divide_updates()        apply(): of one such program, with any features
//   Features::state         let_state_move()
//   Features::buckets       exchange_gradients()
//   Features::state         update_far()
//
// A pass works on what earlier passes have made, whichever they were, and leaves every bit of the
// training as it is. Clipping, averages and mixed labels are emitted by StepBuilder: their blocks
// stand between those of a layer, and plan files know blocks by their numbers.

namespace spillway {

/// Which of the ranks of a training keeps which of the optimizer's numbers: each all of them, or a
/// slice (ZeRO, stage 1).
struct OptimizerDivision {
  std::size_t rank = 0;
  std::size_t ranks = 1;

  [[nodiscard]] bool is_whole() const { return ranks == 1; }
};

/// The memories that may hold parameters and the optimizer's numbers, and the side that updates.
enum class StatePlace : std::uint8_t {
  kNear,       ///< always near
  kMovable,    ///< far while no task needs them
  kUpdatedFar  ///< as kMovable, and the far side runs the updates that it may
};

/// Features of a program besides its micro-batches.
struct Features {
  OptimizerDivision division;  ///< whole without `buckets`
  StatePlace state = StatePlace::kNear;
  /// The buckets in which several ranks exchange gradients; nullopt for a rank alone.
  std::optional<prefetch::BucketRule> buckets;

  /// Returns these features with one of them changed.
  [[nodiscard]] Features with(StatePlace place) const {
    Features changed = *this;
    changed.state = place;
    return changed;
  }
  [[nodiscard]] Features with(const prefetch::BucketRule& rule) const {
    Features changed = *this;
    changed.buckets = rule;
    return changed;
  }
};

/// Leaves out what only gradients of frozen layers need: tasks on the way back that make what no
/// task reads, and their blocks. Blocks and tasks are numbered anew. `patterns` are
/// StepOptions::frozen, with which the step was made. Throws: um::Error if a pattern matches no
/// layer with parameters, or all layers are frozen.
void freeze_layers(Step& training, const std::vector<std::string>& patterns);

/// Returns true if the pattern, of StepOptions::frozen, matches the name of this layer.
[[nodiscard]] bool is_layer_of(const std::string& pattern, const std::string& layer);

/// How much of a network a training step leaves as it is.
struct FrozenParameters {
  std::size_t parameters = 0;
  std::size_t layers = 0;
};

/// Parameters of a training step, of any kind, that have nothing of an optimizer beside them.
[[nodiscard]] FrozenParameters count_frozen(const Step& training);

/// The training of this rank's micro-batches as one step, graph and launches (moDNN section III-B).
/// The blocks and tasks of the second one are those of the first with "#2" behind their names.
/// Behind the task that completes a micro-batch's gradient of parameters stand those that add it to
/// the sums before ("conv1.accumulate#1"). The last micro-batch updates with the sums.
///
/// Small tensors of later micro-batches lie in those of the first (DataBlock::lies_in) if they take
/// more than an eighth of the parameters' bytes. Otherwise plans may also go layer by layer.
///
/// Each batch norm normalizes a micro-batch by its own statistics, and leaves the running ones that
/// the batch began with, moved by these, in a block of its own (Step::statistics). So a batch in
/// micro-batches is not the same training as the whole batch: normalizes_by_batch().
/// Throws: um::Error if two parts of the program would get the same name.
[[nodiscard]] Step make_program(const nets::Network& network, const SizeModel& size_model,
                                const StepOptions& options, const MicroBatches& batches);

/// Applies `features` to what make_program() returns. Pages of `least_page` are the smallest in
/// which it may move. Throws: um::Error where ranks have no gradient to exchange.
void apply(const Features& features, const SizeModel& size_model, um::Bytes least_page,
           Step& program);

/// Gradients of fewer bytes are updated whole by every rank: a message of their own would take
/// longer, and they are little of the memory.
inline constexpr um::Bytes kSmallestDivided{64ULL << 10U};

/// Has this rank update its slice (slice_of_rank()) of each large block of parameters, or part of
/// one, and keep the optimizer's numbers of that alone. The new parameters lie in the gradient's
/// memory ("conv1.updated"), where prefetch::with_exchanges() gathers them, and a task more
/// ("conv1.take") copies them to their place. Each block has one size on all ranks. Each number is
/// updated as it would be without: the same bits.
void divide_updates(Step& step, const SizeModel& size_model, const OptimizerDivision& division);

/// Bytes of what the optimizer keeps beside parameters.
struct OptimizerBytes {
  um::Bytes whole;  ///< on all ranks together
  um::Bytes kept;   ///< on each of them
};
[[nodiscard]] OptimizerBytes optimizer_bytes(const Step& step);

/// Lets plans send parameters and the optimizer's numbers far. Running statistics and a staged
/// batch stay near.
void let_state_move(Step& step);

/// Makes it the step of one of several ranks: gradients outlive it (Step::gradients) and are
/// exchanged (prefetch::with_exchanges()), and updates stand where they leave time for that
/// (prefetch::update_order()). Throws: um::Error where nothing is trained.
void exchange_gradients(Step& step, const prefetch::BucketRule& rule);

/// Has the far side run the updates that it may (prefetch::far_updatable(), in pages of `page`).
/// "fc1.send" copies a gradient that ranks have exchanged. Requires: let_state_move().
void update_far(Step& step, um::Bytes page);

}  // namespace spillway

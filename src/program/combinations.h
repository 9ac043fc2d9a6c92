#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "nets/network.h"
#include "prefetch/moves/micro_batch_size.h"
#include "src/program/micro_batches.h"
#include "src/program/passes.h"
#include "src/program/step.h"

// The features of programs that do not go together, and why.

namespace spillway {

/// Throws: um::Error where the far side would update a slice, which ranks gather in near memory.
void expect_combinable(const Features& features);

/// Throws: um::Error, as `network` has no parameters that the far side may update.
[[noreturn]] void refuse_far_updates();

/// Throws: um::Error where some of the ranks would train none of these micro-batches.
void expect_work_for(std::size_t ranks, const MicroBatches& all);

/// Throws: um::Error unless all micro-batches, which several ranks train, have as many samples.
void expect_equal(const prefetch::BatchCut& batches, std::size_t samples);

/// Throws: um::Error where images of a batch cannot be mixed with each other.
void expect_mixable(const nets::Network& network, std::size_t batch);

/// The first batch norm of `network` that sees a single value per channel when `samples` are
/// trained on together: it would make zeros of whatever it reads. Nothing when there is none.
[[nodiscard]] std::optional<std::string> norm_of_one_value(const nets::Network& network,
                                                           std::size_t samples);

/// As norm_of_one_value() of the last micro-batch, where only that one is so small.
[[nodiscard]] std::optional<std::string> last_norm_of_one_value(const nets::Network& network,
                                                                const MicroBatches& batches);

/// Throws: um::Error that names the layer when a batch norm has one value per channel in every
/// micro-batch; PyTorch refuses it, too.
void expect_values_to_normalize(const nets::Network& network, const MicroBatches& batches);

}  // namespace spillway

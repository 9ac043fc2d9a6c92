#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "nets/network.h"
#include "prefetch/moves/sub_batch.h"

namespace spillway {

/// The first batch norm of `network` that sees a single value per channel when `samples` are
/// trained on together: it would make zeros of whatever it reads. Nothing when there is none.
[[nodiscard]] std::optional<std::string> norm_of_one_value(const nets::Network& network,
                                                           std::size_t samples);

/// As norm_of_one_value() of the last sub-batch, where only that one is so small.
[[nodiscard]] std::optional<std::string> last_norm_of_one_value(
    const nets::Network& network, std::size_t batch, const prefetch::SubBatches& batches);

/// Throws: um::Error that names the layer when training on `batch` samples, cut as `batches` says,
/// has a batch norm of one value per channel in every part; PyTorch refuses it, too.
void expect_values_to_normalize(const nets::Network& network, std::size_t batch,
                                const prefetch::SubBatches& batches);

}  // namespace spillway

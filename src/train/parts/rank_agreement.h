#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "nets/network.h"
#include "src/data/dataset.h"
#include "src/ops/execution_context.h"
#include "src/train/parts/rank_training.h"

namespace spillway {

/// Throws on all ranks, where there are some: um::Error that says what differs, where they would
/// not train the same network on the same data with the same kernels and as many threads, or
/// RankOptions::agreement differs. Of the data it compares names, sizes, class names,
/// content_sha256(), and samples that are spread over all.
void expect_ranks_agree(const RankOptions& ranks, const nets::Network& network,
                        const DatasetPair& data, const ExecutionContext& context);

/// The same of weights that `name` tells of, by their SHA-256; empty: there are none.
void expect_same_weights(const RankOptions& ranks, const std::string& name,
                         const std::string& sha256);

/// Whether a stop is requested, on any rank where there are some: all of them call this.
[[nodiscard]] bool is_stopped(const RankOptions& ranks, const std::stop_token& stop);

/// How many different texts all ranks have together. All of them call this.
[[nodiscard]] std::size_t distinct_of_ranks(Communicator& communicator,
                                            const std::vector<std::string>& own);

}  // namespace spillway

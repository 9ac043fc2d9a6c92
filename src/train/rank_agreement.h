#pragma once

#include <string>

#include "src/io/data/dataset.h"
#include "src/ops/backend.h"
#include "src/ranks/communicator.h"
#include "src/train/trainer_options.h"

namespace spillway {

/// Compares all ranks' network, data, kernels, threads, RankOptions::agreement, tokenizer and the
/// settings that a checkpoint keeps. Throws: um::Error on all ranks that says what differs.
///
/// Data are compared by names, sizes, class names, content_sha256(), and samples that are spread
/// over all of them.
void expect_ranks_agree(const TrainerOptions& options, const DatasetPair& data,
                        const ExecutionContext& context);

/// Compares the SHA-256 of weights, empty where there are none; a sentence calls them `name`.
/// Throws: um::Error on all ranks if they differ.
void expect_same_weights(Communicator& communicator, const std::string& name,
                         const std::string& sha256);

}  // namespace spillway

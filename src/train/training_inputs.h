#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "src/io/data/dataset.h"
#include "src/io/data/open_dataset.h"
#include "src/ops/backend.h"
#include "src/ranks/communicator.h"
#include "src/train/trainer_options.h"

namespace spillway {

/// A training before its program: its data, its device, and options in which nothing is left open.
struct TrainingInputs {
  TrainerOptions options;  ///< those given, with what the data and the device settle
  DatasetPair data;
  ExecutionContext context;
  /// Between the near memories of ranks, in `options` too; null: near memory is RAM.
  std::unique_ptr<Communicator> device_communicator;
};

/// Opens the data, then the device, so that a mistake in the name or the files of the data shows at
/// once. Looks at the files that are going to be read, unless `stop` is requested, and tells
/// `events` how far that is. All ranks call it. Throws: um::Error, one sentence for the user, where
/// options do not go together, files are broken that must not be, nothing would be evaluated though
/// something looks at evaluations, or ranks differ (expect_ranks_agree()).
[[nodiscard]] TrainingInputs open_inputs(const std::function<ExecutionContext()>& open_context,
                                         TrainerOptions options, const TrainerEvents& events,
                                         const std::stop_token& stop);

/// Compares all ranks' network, data, kernels, threads, RankOptions::agreement, tokenizer and the
/// settings that a checkpoint keeps. Throws: um::Error on all ranks that says what differs.
///
/// Data are compared by names, sizes, class names, content_sha256(), and samples that are spread
/// over all of them.
void expect_ranks_agree(const TrainerOptions& options, const DatasetPair& data,
                        const ExecutionContext& context);

}  // namespace spillway

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Rules for putting gradients into buckets in the order of completion. Each bucket is one
/// exchange, and is full when it has at least this size. The defaults are those of PyTorch's
/// DistributedDataParallel: the first bucket is small, so that the exchange begins early.
struct BucketRule {
  um::Bytes first{1ULL << 20U};
  um::Bytes others{25ULL << 20U};
  friend bool operator==(const BucketRule&, const BucketRule&) = default;
};

/// Returns the step of one rank of several, with all gradients in TaskGraph::exchanges. A gradient
/// is read by an update, written by a backward task or a loss, and not read by a forward task; sums
/// of micro-batches count, too. Gradients become state that is always near, like DDP's buckets, and
/// their tasks are not recomputed. If updated parameters lie in a gradient (DataBlock::lies_in)
/// which only their update reads, a rank gets its slice of the sum, and an all-gather of the
/// bucket's parameters follows. Tasks stay in order: see update_order(). Throws: um::Error if there
/// are no gradients.
[[nodiscard]] TaskGraph with_exchanges(TaskGraph graph, const BucketRule& rule = {});

/// Returns the number of buckets; gathered parameters share those of their gradients.
[[nodiscard]] std::size_t count_buckets(const TaskGraph& graph);

/// Adds the exchanges of `graph` to `plan` in the graph's order, which is the same on every rank:
/// each as soon as the last run that makes its blocks has ended. Lets runs wait for the gradients
/// that they use. Changes nothing else in the plan.
/// Complexity: O(runs with their operands); O(1) without exchanges.
void add_exchanges(const TaskGraph& graph, Plan& plan);

/// Returns by block the exchange that it is for (GradientExchange::blocks and waiting), counted
/// from 1; 0 for none.
[[nodiscard]] std::vector<std::uint32_t> exchange_of_blocks(const TaskGraph& graph);

}  // namespace spillway::prefetch

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// How gradients are put into buckets, each of which is one exchange: in the order in which they
/// are complete. A bucket is full when it has at least so many bytes. The defaults are those of
/// PyTorch's DistributedDataParallel: a small first one, so that the exchange begins early.
struct BucketRule {
  um::Bytes first{1ULL << 20U};
  um::Bytes others{25ULL << 20U};
  friend bool operator==(const BucketRule&, const BucketRule&) = default;
};

/// The same step as one rank's of several: with TaskGraph::exchanges of all gradients: what updates
/// read and what is made going backward, or by a loss, where no forward task reads it; sums of
/// sub-batches, too. They become state that is always near, as DDP's buckets are; what makes them
/// is not run again. Where updated parameters lie in a gradient (DataBlock::lies_in), which their
/// update alone reads, a rank gets its slice of the sum, and each bucket is followed by one that
/// gathers the parameters of its blocks. Tasks stay in order: see update_order(). Throws: um::Error
/// where there are no gradients.
[[nodiscard]] TaskGraph with_exchanges(TaskGraph graph, const BucketRule& rule = {});

/// How many buckets there are: gathered parameters lie in those of their gradients.
[[nodiscard]] std::size_t count_buckets(const TaskGraph& graph);

/// Gives `plan` the exchanges of `graph` in order, each as soon as it is ready, and has the runs of
/// the plan wait for those whose gradients they use. Nothing else of it changes.
/// Complexity: O(runs with their operands); O(1) without exchanges.
void add_exchanges(const TaskGraph& graph, Plan& plan);

/// By block: the exchange that it is in, counted from 1; 0 where it is in none.
[[nodiscard]] std::vector<std::uint32_t> exchange_of_blocks(const TaskGraph& graph);

}  // namespace spillway::prefetch

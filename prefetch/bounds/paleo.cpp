#include "prefetch/bounds/paleo.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/saved_blocks.h"
#include "um/bytes.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;
using um::Nanoseconds;

// Times in nanoseconds, sizes in bytes.
struct Layer {
  double forward = 0;
  double backward = 0;
  double buffers = 0;
};

Nanoseconds rounded(double nanoseconds) { return Nanoseconds{std::llround(nanoseconds)}; }

// Returns a layer per forward run, and one for the backward runs before all of these.
std::vector<Layer> find_layers(const TaskGraph& graph, const Profile& profile,
                               std::span<const TaskRun> runs, std::span<const FarInterval> saved) {
  std::vector<Layer> layers(runs.size() + 1);
  for (std::size_t p = 0; p < runs.size(); ++p) {
    if (graph[runs[p].task].phase == Phase::kForward)
      layers[p].forward = um::to_double(profile(runs[p]));
  }
  for (const BackwardLayer& backward : find_backward_layers(graph, runs, saved)) {
    for (Position p = backward.begin; p < backward.end; ++p) {
      layers[backward.layer].backward += um::to_double(profile(runs[p]));
    }
  }
  for (const FarInterval& block : saved) {
    layers[block.last].buffers += static_cast<double>(block.size.count());
  }
  std::erase_if(layers, [](const Layer& layer) {
    return layer.forward == 0 && layer.backward == 0 && layer.buffers == 0;
  });
  return layers;
}

// Returns near memory for saved blocks: what the budget leaves beside the largest use by others.
double find_capacity(const TaskGraph& graph, const BlockSizes& block_sizes, Bytes budget,
                     std::span<const TaskRun> runs, std::span<const FarInterval> saved) {
  const std::vector<Life> lives = find_lives(graph, runs);
  std::vector<Bytes> other = demand(graph, block_sizes, runs, lives);
  std::vector<bool> is_saved(graph.data.size(), false);
  for (const FarInterval& block : saved) is_saved[static_cast<std::size_t>(block.data)] = true;
  for (const Life& life : lives) {
    if (!is_saved[static_cast<std::size_t>(life.data)]) continue;
    for (Position p = life.begin(); p <= life.last(); ++p) other[p] -= block_sizes.size(life.data);
  }
  const Bytes max = other.empty() ? Bytes{} : *std::ranges::max_element(other);
  return static_cast<double>(um::saturating_difference(block_sizes.pool(budget), max).count());
}

class Paleo {
 public:
  Paleo(std::vector<Layer> layers, const LinkProfile& link, double capacity)
      : layers_{std::move(layers)}, link_{link}, capacity_{capacity} {
    for (const Layer& layer : layers_) {
      compute_ += layer.forward + layer.backward;
      capacity_ = std::max(capacity_, layer.buffers);
    }
  }

  [[nodiscard]] PaleoStep vdnn_like() const {
    double time = 0;
    double swapped = 0;  // by the previous layer
    for (const Layer& layer : layers_) {
      time += std::max(layer.forward, swap_out(swapped));
      swapped = layer.buffers;
    }
    time += swap_out(swapped);
    time += swap_in(swapped);
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const double next = l == 0 ? 0 : layers_[l - 1].buffers;
      time += std::max(layers_[l].backward, swap_in(next));  // Eq. 7
    }
    return result(time, std::nullopt);
  }

  [[nodiscard]] PaleoStep capacity_based() const {
    const std::size_t first_kept = find_first_kept();
    const double forward = forward_within(first_kept);
    double far = 0;
    for (std::size_t l = 0; l < first_kept; ++l) far += layers_[l].buffers;
    double near = 0;
    for (std::size_t l = first_kept; l < layers_.size(); ++l) near += layers_[l].buffers;
    double time = 0;
    std::optional<double> catch_up;
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const Layer& layer = layers_[l];
      if (near < layer.buffers) {  // processing has caught up with swap-in (Eq. 10)
        if (!catch_up) catch_up = time;
        const double missing = layer.buffers - near;
        time += missing / rate(link_.prefetch);
        far -= missing;
        near = layer.buffers;
      }
      const double fetched =
          std::min({rate(link_.prefetch) * layer.backward, capacity_ - near, far});  // Eq. 6
      far -= fetched;
      near += fetched - layer.buffers;
      time += layer.backward;
    }
    return result(forward + time, catch_up);
  }

 private:
  static double rate(um::Bandwidth bandwidth) { return bandwidth.bytes_per_second() * 1e-9; }
  [[nodiscard]] double swap(double bytes, um::Bandwidth bandwidth) const {
    return bytes == 0 ? 0 : um::to_double(link_.latency) + bytes / rate(bandwidth);
  }
  [[nodiscard]] double swap_out(double bytes) const { return swap(bytes, link_.offload); }
  [[nodiscard]] double swap_in(double bytes) const { return swap(bytes, link_.prefetch); }

  // Returns the first of the last layers that fit together (Ca_layers).
  [[nodiscard]] std::size_t find_first_kept() const {
    double kept = 0;
    std::size_t first = layers_.size();
    while (first > 0 && kept + layers_[first - 1].buffers <= capacity_) {
      kept += layers_[--first].buffers;
    }
    return first;
  }

  // Returns the time of the forward pass when the layers before `first_kept` are swapped out in
  // order.
  [[nodiscard]] double forward_within(std::size_t first_kept) const {
    double time = 0;
    double near = 0;
    std::size_t leaving = 0;
    std::vector<double> out;  // by swapped layer: when its swap-out ends
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      near += layers_[l].buffers;
      while (near > capacity_ && leaving < std::min(l, first_kept)) {
        time = std::max(time, out[leaving]);
        near -= layers_[leaving++].buffers;
      }
      time += layers_[l].forward;
      if (l < first_kept) {
        const double start = out.empty() ? time : std::max(time, out.back());
        out.push_back(start + swap_out(layers_[l].buffers));
      }
    }
    return time;
  }

  [[nodiscard]] PaleoStep result(double time, std::optional<double> catch_up) const {
    PaleoStep step{.makespan = rounded(time), .compute = rounded(compute_)};
    if (catch_up) step.catch_up = rounded(*catch_up);
    return step;
  }

  std::vector<Layer> layers_;
  LinkProfile link_;
  double capacity_;
  double compute_ = 0;
};

}  // namespace

std::string_view to_string(PaleoStrategy strategy) {
  return strategy == PaleoStrategy::kVdnnLike ? "vdnn-like" : "capacity-based";
}

PaleoStrategy paleo_strategy(std::string_view planner) {
  const bool is_layer_synchronous = planner.starts_with("vdnn") || planner == "ibm-ooc";
  return is_layer_synchronous ? PaleoStrategy::kVdnnLike : PaleoStrategy::kCapacityBased;
}

PaleoStep paleo_step(const TaskGraph& graph, const Profile& profile, const Plan& plan,
                     PaleoStrategy strategy) {
  const BlockSizes block_sizes{graph, plan.page};
  std::vector<TaskRun> runs = plan.runs;
  std::erase_if(runs, [](const TaskRun& run) { return run.is_recomputation; });
  const std::vector<FarInterval> saved = find_saved_blocks(graph, block_sizes, runs);
  const Paleo paleo{find_layers(graph, profile, runs, saved), profile.link,
                    find_capacity(graph, block_sizes, plan.budget, runs, saved)};
  return strategy == PaleoStrategy::kVdnnLike ? paleo.vdnn_like() : paleo.capacity_based();
}

}  // namespace spillway::prefetch

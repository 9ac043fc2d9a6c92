#include "src/step/shard_steps.h"

#include <algorithm>
#include <map>
#include <utility>

#include "um/error.h"

namespace spillway {
namespace {

enum class Kind { kBegins, kEnds, kLast };

}  // namespace

std::size_t ShardedBatch::waiting_sums() const {
  std::size_t waits = 0;
  std::size_t most = 0;
  for (std::size_t shard = own.first; shard < own.end; ++shard) {
    if (shard > own.first && begins_node(shard)) most = std::max(most, ++waits);
    waits -= sums_due_after(shard);
  }
  return most;
}

ShardSteps make_shard_steps(const nets::Network& network, const SizeModel& size_model,
                            const StepOptions& options, const ShardedBatch& batch) {
  um::expects(batch.own.count() > 0 && batch.batch == batch.shard_size() * batch.tree.shards(),
              "shards of one size, of which a rank has some");
  StepOptions own_options = options;
  own_options.batch = batch.shard_size();
  const Step whole = make_training_step(network, size_model, own_options);
  const auto divided = [&](Step step) {
    divide_updates(step, whole, size_model, batch.division);
    return step;
  };
  const auto make = [&](SubStepPlace place) {
    return divided(make_sub_step(whole, place, network, GradientParts::kWhole));
  };

  ShardSteps made;
  std::map<Kind, std::size_t> places;
  const auto add = [&](Kind kind, const auto& make_step) {
    const auto [place, is_new] = places.emplace(kind, made.steps.size());
    if (is_new) {
      made.steps.push_back({.step = make_step(), .times = 0, .batch = batch.shard_size()});
    }
    ++made.steps[place->second].times;
    made.sequence.push_back(place->second);
  };
  for (std::size_t shard = batch.own.first; shard + 1 < batch.own.end; ++shard) {
    if (batch.begins_node(shard)) {
      add(Kind::kBegins, [&] { return make(SubStepPlace::kFirst); });
    } else {
      add(Kind::kEnds, [&] { return make(SubStepPlace::kMiddle); });
    }
  }
  add(Kind::kLast, [&] {
    Step last = batch.begins_node(batch.own.end - 1) ? divided(whole) : make(SubStepPlace::kLast);
    exchange_gradients(last, batch.buckets);
    return last;
  });
  return made;
}

}  // namespace spillway

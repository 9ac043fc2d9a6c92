#include "src/train/parts/rank_buckets.h"

#include "src/plan/bucket_choice.h"
#include "src/plan/state_choice.h"
#include "src/ranks/agreement.h"
#include "src/train/parts/first_rank.h"
#include "src/train/parts/rank_agreement.h"
#include "src/train/parts/rank_step.h"
#include "um/error.h"

namespace spillway {
namespace {

bool fits(const Workload& near, const SizeModel& size_model, um::Bytes budget,
          const PlanRequest& request) {
  const StateChoice state{near, size_model, request};
  try {
    expect_feasible(state.within(budget), budget, request);
    return true;
  } catch (const um::Error&) {  // such as BudgetTooSmall
    return false;
  }
}

}  // namespace

ChosenBuckets choose_rank_buckets(const RankOptions& ranks, const Workload& near,
                                  const TimedSteps& timed, const SizeModel& size_model,
                                  um::Bytes budget, const PlanRequest& request) {
  Communicator& communicator = *ranks.communicator;
  const ShardedBatch batch = shard_batch(ranks, ranks.shards * near.training_steps().back().batch);
  const auto with_buckets = [&](const prefetch::BucketRule& rule) {
    return near.with_buckets(size_model, rule, [&](const Step& last) {
      return RankStep::near_memory(batch, ranks, last);
    });
  };
  ChosenBuckets chosen{.rule = ranks.buckets};
  on_first_rank(communicator, [&] {
    chosen.rule =
        choose_buckets(near.training().graph, ranks.buckets, *request.planner,
                       [&](const prefetch::BucketRule& rule, const prefetch::Planner& planner) {
                         return planned_time(*with_buckets(rule), timed, size_model, budget,
                                             with_planner(request, planner));
                       });
  });
  share_first(communicator, chosen.rule);
  if (chosen.rule == ranks.buckets) return chosen;
  auto other = with_buckets(chosen.rule);
  if (any_rank(communicator, !fits(*other, size_model, budget, request))) {
    return {.rule = ranks.buckets};
  }
  chosen.profiles = profiles_of(*other, timed);
  chosen.near = std::move(other);
  return chosen;
}

}  // namespace spillway

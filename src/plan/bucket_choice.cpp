#include "src/plan/bucket_choice.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "prefetch/interconnect.h"
#include "prefetch/planners/catalogue.h"
#include "src/plan/plan_question.h"
#include "src/plan/predicted_step.h"
#include "src/plan/state_choice.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::BucketRule;
using prefetch::Profile;
using prefetch::TaskGraph;
using um::Bytes;
using um::Nanoseconds;

constexpr Bytes kMebibyte{1ULL << 20U};
constexpr std::array<std::uint64_t, 7> kMebibytes{1, 2, 5, 10, 25, 50, 100};

// Gradients are in one order: how many of them are in each bucket says which.
std::vector<std::size_t> counts_of(const TaskGraph& graph) {
  std::vector<std::size_t> counts;
  for (const prefetch::GradientExchange& exchange : graph.exchanges) {
    if (exchange.is_of_gradients()) counts.push_back(exchange.blocks.size());
  }
  return counts;
}

struct BucketCandidate {
  BucketRule rule;
  std::vector<std::size_t> counts;  // of gradients, by bucket
  std::optional<Nanoseconds> time{};
};

// Each way to fill buckets once.
class BucketCandidates {
 public:
  BucketCandidates(TaskGraph graph, const BucketRule& usual) : graph_{std::move(graph)} {
    graph_.exchanges.clear();
    add(usual);
    const Bytes all = prefetch::gradient_bytes(prefetch::with_exchanges(graph_, usual));
    for (const std::uint64_t mebibytes : kMebibytes) {
      if (mebibytes * kMebibyte < all) add_with(mebibytes * kMebibyte);
    }
    add_with(all);
  }

  [[nodiscard]] std::vector<BucketCandidate> take() { return std::move(candidates_); }

 private:
  void add_with(Bytes others) {
    add({.first = std::min(kMebibyte, others), .others = others});
    add({.first = others, .others = others});
  }

  void add(const BucketRule& rule) {
    std::vector<std::size_t> counts = counts_of(prefetch::with_exchanges(graph_, rule));
    if (std::ranges::find(candidates_, counts, &BucketCandidate::counts) != candidates_.end())
      return;
    candidates_.push_back({.rule = rule, .counts = std::move(counts)});
  }

  TaskGraph graph_;  // before it has exchanges
  std::vector<BucketCandidate> candidates_;
};

// Leaves those that have plans, the best first.
void time_all(std::vector<BucketCandidate>& candidates, const PlanRequest& request,
              const TimeOfBuckets& time_of) {
  for (BucketCandidate& candidate : candidates) candidate.time = time_of(candidate.rule, request);
  std::erase_if(candidates, [](const BucketCandidate& each) { return !each.time; });
  std::ranges::stable_sort(candidates, {}, [](const BucketCandidate& each) {
    return std::tuple{*each.time, each.counts.size()};
  });
}

// Returns the same request of another planner, with state near if that of `request` leaves it so.
PlanRequest with_planner(PlanRequest request, const prefetch::Planner& planner) {
  if (!request.planner->moves_state()) request.state = StateRule::kNear;
  request.planner = &planner;
  return request;
}

}  // namespace

std::vector<BucketRule> bucket_candidates(const TaskGraph& graph, const BucketRule& usual) {
  std::vector<BucketRule> rules;
  for (const BucketCandidate& each : BucketCandidates{graph, usual}.take())
    rules.push_back(each.rule);
  return rules;
}

BucketRule choose_buckets(const TaskGraph& graph, const BucketRule& usual,
                          const PlanRequest& request, const TimeOfBuckets& time_of) {
  constexpr std::string_view kFast = "capacity";
  std::vector<BucketCandidate> candidates = BucketCandidates{graph, usual}.take();
  if (candidates.size() == 1) return usual;
  time_all(candidates, with_planner(request, prefetch::find_planner(kFast)), time_of);
  if (candidates.empty()) return usual;
  const std::string_view planner = request.planner->name();
  if (planner == kFast) return candidates.front().rule;
  const std::size_t best = planner == "joint" ? 2 : 1;
  std::vector<BucketCandidate> finalists;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i < best || candidates[i].rule == usual) finalists.push_back(std::move(candidates[i]));
  }
  if (finalists.size() == 1) return finalists.front().rule;
  time_all(finalists, request, time_of);
  return finalists.empty() ? usual : finalists.front().rule;
}

Profile profile_of(const Workload& workload, const TimedSteps& timed) {
  Profile profile = profile_for(workload, timed.workload, timed.profile);
  profile.exchanges =
      prefetch::exchange_times(workload.training().graph, timed.interconnect, profile.link);
  return profile;
}

std::optional<um::Nanoseconds> planned_time(const Workload& near, const TimedSteps& timed,
                                            const SizeModel& size_model, um::Bytes budget,
                                            const PlanRequest& request) {
  const StateChoice state{near, size_model, request};
  const Workload& steps = state.within(budget);
  try {
    return answer({.steps = steps,
                   .choice = &state,
                   .profile = profile_of(steps, timed),
                   .budget = budget,
                   .request = request})
        .step;
  } catch (const um::Error&) {  // such as BudgetTooSmall
    return std::nullopt;
  }
}

}  // namespace spillway

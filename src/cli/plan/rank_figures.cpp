#include "src/cli/plan/rank_figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/simulate/timeline.h"
#include "src/cli/flags/bucket_flag.h"
#include "src/cli/flags/duration.h"
#include "src/cli/plan/best_plan.h"
#include "src/plan/budget_too_small.h"
#include "um/bytes.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

using nlohmann::json;
using prefetch::Interval;
using um::Bytes;
using um::Nanoseconds;

Nanoseconds length(const std::vector<Interval>& intervals) {
  Nanoseconds sum{0};
  for (const Interval& each : intervals) sum += each.end - each.begin;
  return sum;
}

// How long something of `a` and something of `b` happen at once; each in order, without overlaps.
Nanoseconds overlap(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Nanoseconds sum{0};
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Nanoseconds both = std::min(a[i].end, b[j].end) - std::max(a[i].begin, b[j].begin);
    sum += std::max(both, Nanoseconds{0});
    (a[i].end < b[j].end ? i : j) += 1;
  }
  return sum;
}

struct OneRank {
  Nanoseconds time;
  Bytes budget;
};

// Its gradients come and go in whole pages, which may take a few more than the budget of several.
OneRank plan_one_rank(const SubjectFlags& flags, Bytes budget, const PlanRequest& request) {
  PlanSubject one = flags.open();
  one.choose_state(request);
  try {
    return {plan_best(one, budget, request).timeline.makespan(), budget};
  } catch (const BudgetTooSmall& complaint) {
    const Bytes smallest = complaint.smallest();
    return {plan_best(one, smallest, request).timeline.makespan(), smallest};
  }
}

// Of a plan of the same step that takes exchanges to cost nothing.
Nanoseconds time_of_unaware(const PlanSubject& subject, Bytes budget, const PlanRequest& request) {
  prefetch::Profile unaware = subject.profile;
  std::ranges::fill(unaware.exchanges, prefetch::ExchangeTime{});
  const prefetch::Plan plan = plan_step(*subject.step, unaware, budget, request);
  return prefetch::simulate(subject.step->graph, plan, subject.profile).makespan();
}

}  // namespace

json rank_figures(const RankFlags& ranks, const SubjectFlags& flags, const Planned& planned,
                  const PlanSubject& subject, Bytes budget, const PlanRequest& request,
                  std::size_t samples) {
  const prefetch::Interconnect interconnect = ranks.interconnect();
  const prefetch::Timeline& timeline = planned.timeline;
  const Nanoseconds exchange = length(timeline.exchanges);
  const Nanoseconds hidden = overlap(timeline.exchanges, timeline.runs);
  const double step = um::seconds(timeline.makespan());
  const OneRank one_rank = plan_one_rank(flags, budget, request);
  const double one = um::seconds(one_rank.time);
  const double unaware = um::seconds(time_of_unaware(subject, budget, request));
  json figures{
      {"count", interconnect.ranks},
      {"interconnect_bytes_per_second", interconnect.bandwidth.bytes_per_second()},
      {"compute_speed_while_exchanging", interconnect.compute_speed},
      {"interconnect_latency_seconds", um::seconds(interconnect.latency)},
      {"exchange_on", ranks.exchange_on},
      {"buckets", prefetch::count_buckets(subject.step->graph)},
      {"gradient_bytes", prefetch::gradient_bytes(subject.step->graph).count()},
      {"zero", ranks.zero.stage},
      {"exchange_seconds", um::seconds(exchange)},
      {"exchange_hidden", exchange.count() > 0 ? um::seconds(hidden) / um::seconds(exchange) : 1.0},
      {"one_rank_seconds", one},
      {"one_rank_budget_bytes", one_rank.budget.count()},
      {"scaling_efficiency", one / step},
      {"unaware_seconds", unaware}};
  figures.update(
      buckets_json(subject.step->graph, subject.buckets.value(), ranks.bucket.is_auto()));
  if (samples > 0) {
    figures["images_per_second"] =
        static_cast<double>(interconnect.ranks) * static_cast<double>(samples) / step;
  }
  return figures;
}

void print_ranks(const json& ranks, Bytes budget) {
  const auto time = [&](const char* key) {
    return duration_text(um::Nanoseconds{std::llround(1e9 * ranks.at(key).get<double>())});
  };
  const auto percent = [&](const char* key) { return 100 * ranks.at(key).get<double>(); };
  fmt::print("  ranks            {}, which exchange {} in {}, {:.1f} GB/s, {}\n",
             ranks.at("count").get<std::uint32_t>(),
             um::to_string(Bytes{ranks.at("gradient_bytes").get<std::uint64_t>()}),
             um::count_of(ranks.at("buckets").get<std::size_t>(), "bucket"),
             1e-9 * ranks.at("interconnect_bytes_per_second").get<double>(),
             ranks.at("exchange_on") == "link" ? "on the link" : "beside the link");
  fmt::print("  gradients        in {}\n", describe_buckets(ranks));
  fmt::print("  exchange         {}, {:.1f} % of it beside tasks\n", time("exchange_seconds"),
             percent("exchange_hidden"));
  if (ranks.contains("images_per_second")) {
    fmt::print("  all ranks        {:.1f} images/s\n", ranks.at("images_per_second").get<double>());
  }
  const Bytes of_one{ranks.at("one_rank_budget_bytes").get<std::uint64_t>()};
  fmt::print("  scaling          {:.1f} %; one rank alone takes {} a step{}\n",
             percent("scaling_efficiency"), time("one_rank_seconds"),
             of_one == budget ? "" : ", within " + um::to_string(of_one));
  fmt::print("  unaware          {} by a plan that takes the exchange to cost nothing\n",
             time("unaware_seconds"));
}

}  // namespace spillway::cli

#include "src/cli/plan_figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/bounds/bounds.h"
#include "prefetch/bounds/paleo.h"
#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/planner.h"
#include "prefetch/planners/variant_search.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/simulate/timeline.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/rank_flags.h"
#include "src/plan/budget.h"
#include "src/plan/file_plans.h"
#include "src/plan/plan_question.h"
#include "src/plan/plans.h"
#include "src/plan/state_choice.h"
#include "um/bytes.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

using nlohmann::json;
using prefetch::Interval;
using um::Bytes;
using um::Nanoseconds;

// Returns the time that `a` and `b` overlap; each is sorted and has no overlaps itself.
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

// Plans one rank's step. Gradients move in whole pages, so it may need slightly more than the
// budget of several ranks.
OneRank plan_one_rank(const SubjectFlags& flags, Bytes budget, const PlanRequest& request) {
  PlanSubject one = flags.open(request.memory);
  one.choose_state(request);
  try {
    return {plan_best(one, budget, request).timeline.makespan(), budget};
  } catch (const BudgetTooSmall& complaint) {
    const Bytes smallest = complaint.smallest();
    return {plan_best(one, smallest, request).timeline.makespan(), smallest};
  }
}

// Returns the time of a plan that was made as if exchanges were free.
Nanoseconds time_of_unaware(const PlanSubject& subject, Bytes budget, const PlanRequest& request) {
  prefetch::Profile unaware = subject.profile;
  std::ranges::fill(unaware.exchanges, prefetch::ExchangeTime{});
  const prefetch::Answer answer = plan_step(*subject.step, unaware, budget, request);
  return prefetch::simulate(subject.step->graph, answer.plan, subject.profile).makespan();
}

// Returns "16 full, 8 light", in order of names.
std::string describe_variants(const json& variants) {
  std::map<std::string, std::size_t> tasks;
  for (const json& name : variants) ++tasks[name.get<std::string>()];
  std::string text;
  for (const auto& [name, count] : tasks) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

// As plan_step(), in the variants with the shortest plan.
prefetch::Answer plan_variants(PlanSubject& subject, Bytes budget, const PlanRequest& request) {
  expect_feasible(*subject.step, budget);
  prefetch::VariedAnswer found = prefetch::plan_varied(
      *request.planner, subject.trace->varied,
      [&](const prefetch::VariantChoice& choice) { return subject.step_of(choice); },
      make_problem(*subject.step, subject.profile, budget, request));
  subject.use(std::move(found.step));
  if (auto* const answer = std::get_if<prefetch::Answer>(&found.answer)) return std::move(*answer);
  const auto& refusal = std::get<prefetch::Infeasible>(found.answer);
  throw BudgetTooSmall{subject.step->graph, refusal.task, budget, refusal.smallest_budget};
}

}  // namespace

json figures_of(const prefetch::Answer& answer, const PlanSubject& subject, Bytes budget,
                const PlanRequest& request) {
  const prefetch::Problem problem = make_problem(*subject.step, subject.profile, budget, request);
  const prefetch::PlanFacts facts = facts_of(answer.plan, problem.graph);
  json figures = prefetch::to_json(answer, problem);
  figures.update({{"feasible", true},
                  {"profile", subject.profile.source},
                  {"budget_bytes", budget.count()},
                  {"min_budget_bytes", subject.need().smallest.count()},
                  {"resident_bytes", subject.need().resident.count()},
                  {"compute_seconds", um::seconds(prefetch::fastest_step(subject.all_near()))},
                  {"bounds", prefetch::to_json(prefetch::lower_bounds(problem))},
                  {"state_far_bytes", facts.state_far.count()},
                  {"far_updates", facts.far_updates},
                  {"algorithms", facts.algorithms},
                  {"tasks", problem.graph.tasks.size()},
                  {"verified", true}});
  if (json variants = prefetch::variants_json(problem.graph); !variants.empty()) {
    figures["variants"] = std::move(variants);
  }
  return figures;
}

void add_paleo(const prefetch::Answer& answer, const PlanSubject& subject, json& figures) {
  const auto strategy = prefetch::paleo_strategy(answer.plan.planner);
  const auto step =
      prefetch::paleo_step(subject.step->graph, subject.profile, answer.plan, strategy);
  figures["paleo_seconds"] = um::seconds(step.makespan);
  figures["paleo_strategy"] = prefetch::to_string(strategy);
}

json places_json(const prefetch::ArenaUse& use) {
  return {{"extent_bytes", use.extent.count()},
          {"arena_bytes", use.room.count()},
          {"fits", use.fits()}};
}

std::string describe_places(const json& use) {
  const auto bytes = [&](const char* key) {
    return um::to_string(Bytes{use.at(key).get<std::uint64_t>()});
  };
  if (use.at("fits").get<bool>()) {
    return fmt::format("fixed places in {} of {}", bytes("extent_bytes"), bytes("arena_bytes"));
  }
  return fmt::format("places as blocks come, compacted where needed: fixed ones take {}, not {}",
                     bytes("extent_bytes"), bytes("arena_bytes"));
}

std::string describe_need(const prefetch::NearNeed& need, bool is_resident) {
  return is_resident ? "smallest feasible: all near, " + um::to_string(need.resident)
                     : fmt::format("smallest feasible {}, all near {}",
                                   um::to_string(need.smallest), um::to_string(need.resident));
}

void print_figures(const json& figures) {
  const auto bytes = [&](const char* key) {
    return um::to_string(Bytes{figures.at(key).get<std::uint64_t>()});
  };
  const auto time = [](const json& seconds) {
    return duration_text(um::Nanoseconds{std::llround(1e9 * seconds.get<double>())});
  };
  fmt::print("  profile          {}\n", figures.at("profile").get<std::string>());
  prefetch::NearNeed need;
  need.resident = Bytes{figures.at("resident_bytes").get<std::uint64_t>()};
  need.smallest = Bytes{figures.at("min_budget_bytes").get<std::uint64_t>()};
  fmt::print("  budget           {} ({})\n", bytes("budget_bytes"),
             describe_need(need, figures.at("memory") == "resident"));
  if (figures.at("micro_batches") > 1) {
    fmt::print("  micro-batches    {} of {}\n", figures.at("micro_batches").get<std::size_t>(),
               um::count_of(figures.at("micro_batch_size").get<std::size_t>(), "image"));
  }
  fmt::print("  peak, verified   {}\n", bytes("peak_bytes"));
  if (const auto places = figures.find("placement"); places != figures.end()) {
    fmt::print("  arena            {}\n", describe_places(*places));
  }
  fmt::print("  step             {}, of it arithmetic {}\n", time(figures.at("makespan_seconds")),
             time(figures.at("arithmetic_seconds")));
  if (figures.contains("paleo_seconds")) {
    fmt::print("  by OOC-Paleo     {} ({})\n", time(figures.at("paleo_seconds")),
               figures.at("paleo_strategy").get<std::string>());
  }
  if (const auto noise = figures.find("noise"); noise != figures.end()) {
    fmt::print("  under noise      {} on average, {} at worst\n",
               time(noise->at("mean_makespan_seconds")), time(noise->at("worst_makespan_seconds")));
  }
  const json& bounds = figures.at("bounds");
  fmt::print("  no plan below    {}; in the step's own order {} (moving alone {})\n",
             time(bounds.at("any_order")), time(bounds.at("mixed_turnover")),
             time(bounds.at("offload_turnover")));
  fmt::print("  moved            {} out, {} in, {} recomputed\n", bytes("offloaded_bytes"),
             bytes("prefetched_bytes"),
             um::count_of(figures.at("recomputed_tasks").get<std::uint64_t>(), "task"));
  if (const auto variants = figures.find("variants"); variants != figures.end()) {
    fmt::print("  variants         {}\n", describe_variants(*variants));
  }
  if (const auto far = figures.find("state_far_bytes"); far != figures.end() && *far > 0) {
    fmt::print("  state far        {} between steps\n", bytes("state_far_bytes"));
  }
  if (const auto updates = figures.find("far_updates"); updates != figures.end() && *updates > 0) {
    fmt::print("  updates far      {}\n", um::count_of(updates->get<std::size_t>(), "tensor"));
  }
  const auto planner = figures.at("planner").get<std::string>();
  if (figures.at("planning_seconds") == 0.0) {  // read from a file
    fmt::print("  plan of          {}\n", planner);
  } else {
    fmt::print("  planned in       {} by {}\n", time(figures.at("planning_seconds")), planner);
  }
}

prefetch::Answer plan_best(PlanSubject& subject, Bytes budget, const PlanRequest& request) {
  if (subject.chooses_variants(request)) return plan_variants(subject, budget, request);
  if (!subject.state) return plan_step(*subject.step, subject.profile, budget, request);
  const Workload& first = subject.state->within(budget);
  subject.use(first);
  PlanAnswer best = answer({.steps = first,
                            .choice = subject.state.get(),
                            .profile = subject.profile,
                            .budget = budget,
                            .request = request,
                            .evaluates = false});
  subject.use(*best.workload);
  return {.plan = std::move(best.plans.training),
          .planning = best.planning,
          .peak = best.peak,
          .timeline = std::move(best.timeline)};
}

prefetch::Answer plan_of_file(PlanSubject& subject, const std::string& path,
                              const PlanRequest& request) {
  PlanOfFile file{.plan = {}, .name = path};
  if (subject.state) {
    FilePlan read = read_file_plan(*subject.state, request, path);
    subject.use(*read.workload);
    file = std::move(read.plan);
  } else {
    const prefetch::JsonFile read{path};
    if (!subject.trace->varied.groups.empty()) {
      const auto choice = subject.trace->varied.named(prefetch::read_variants(read.root()));
      subject.use(subject.step_of(choice));
      subject.need_at_least(subject.step->graph);
    }
    file.plan = prefetch::read_plan(read, subject.step->graph);
  }
  const Bytes budget = file.plan.budget + subject.step->elsewhere;
  return use_plan(std::move(file), *subject.step, subject.profile, budget, request);
}

json rank_figures(const RankFlags& ranks, const SubjectFlags& flags, const prefetch::Answer& answer,
                  const PlanSubject& subject, Bytes budget, const PlanRequest& request,
                  std::size_t samples) {
  const prefetch::Interconnect interconnect = ranks.interconnect();
  const prefetch::Timeline& timeline = answer.timeline;
  Nanoseconds exchange{0};
  for (const Interval& each : timeline.exchanges) exchange += each.end - each.begin;
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

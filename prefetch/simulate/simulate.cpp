#include "prefetch/simulate/simulate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "prefetch/simulate/exchange_lane.h"
#include "prefetch/simulate/paging_model.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Nanoseconds;

// A queue with entry `next` either waiting or with `left` nanoseconds of undisturbed work.
struct Queue {
  std::vector<double> work;  // by entry
  std::vector<Progress> after;
  std::vector<Interval>* intervals;
  std::uint32_t next = 0;
  bool is_busy = false;
  double left = 0;

  [[nodiscard]] bool is_done() const { return next == work.size(); }
  [[nodiscard]] bool can_start(const Progress& now) const {
    return !is_busy && !is_done() && now.reaches(after[next]);
  }
  void start(Nanoseconds now) {
    is_busy = true;
    left = work[next];
    (*intervals)[next].begin = now;
  }
  void end(Nanoseconds now) {
    is_busy = false;
    (*intervals)[next].end = now;
    ++next;
  }
};

Queue move_queue(const std::vector<Move>& moves, um::Bandwidth bandwidth, const LinkProfile& link,
                 std::vector<Interval>& intervals) {
  Queue queue{.work = {}, .after = {}, .intervals = &intervals};
  queue.work.reserve(moves.size());
  queue.after.reserve(moves.size());
  for (const Move& move : moves) {
    queue.work.push_back(move.is_clean ? 0 : um::to_double(link.latency + move.size / bandwidth));
    // As in the runtime: beside its readers if the link copies while tasks read, else after them.
    queue.after.push_back(move.after);
    if (!link.copies_while_read) queue.after.back().runs = move.frees_after();
  }
  intervals.resize(moves.size());
  return queue;
}

Queue run_queue(const Plan& plan, const Profile& profile, const SimulateOptions& options,
                std::vector<Interval>& intervals) {
  Queue queue{.work = run_times(plan, profile, options), .after = {}, .intervals = &intervals};
  queue.after.reserve(plan.runs.size());
  for (const TaskRun& run : plan.runs) queue.after.push_back(run.after);
  intervals.resize(plan.runs.size());
  return queue;
}

Queue far_queue(const Plan& plan, const Profile& profile, std::vector<Interval>& intervals) {
  Queue queue{.work = {}, .after = {}, .intervals = &intervals};
  for (const FarRun& run : plan.far_runs) {
    queue.work.push_back(um::to_double(profile.far_updates.at(run.update)));
    queue.after.push_back(run.after);
  }
  intervals.resize(plan.far_runs.size());
  return queue;
}

class Simulation {
 public:
  Simulation(const Plan& plan, const Profile& profile, const SimulateOptions& options)
      : plan_{plan},
        link_{profile.link},
        compute_{run_queue(plan, profile, options, timeline_.runs)},
        offload_{move_queue(plan.offloads, link_.offload, link_, timeline_.offloads)},
        prefetch_{move_queue(plan.prefetches, link_.prefetch, link_, timeline_.prefetches)},
        far_{far_queue(plan, profile, timeline_.far_runs)},
        exchange_{plan, profile} {
    timeline_.exchanges.resize(plan.exchanges.size());
  }

  Timeline run() {
    while (true) {
      start_what_can();
      if (!is_busy()) break;
      advance();
    }
    um::expects(compute_.is_done() && offload_.is_done() && prefetch_.is_done() && far_.is_done() &&
                    exchange_.is_done(),
                "a plan that waits for ever was not verified");
    return std::move(timeline_);
  }

 private:
  [[nodiscard]] Progress progress() const {
    return {.runs = compute_.next, .offloads = offload_.next, .prefetches = prefetch_.next};
  }

  [[nodiscard]] bool is_busy() const {
    return compute_.is_busy || offload_.is_busy || prefetch_.is_busy || far_.is_busy ||
           exchange_.is_busy();
  }

  [[nodiscard]] bool has_exchanged() const {
    return exchange_.ended() >= plan_.runs[compute_.next].after_exchanges;
  }

  void start_what_can() {
    const Progress now = progress();
    if (exchange_.start(now.runs)) timeline_.exchanges[exchange_.ended()].begin = time();
    if (compute_.can_start(now) && has_exchanged()) compute_.start(time());
    if (far_.can_start(now)) far_.start(time());
    if (offload_.can_start(now) && (link_.is_duplex || !prefetch_.is_busy)) offload_.start(time());
    if (prefetch_.can_start(now) && (link_.is_duplex || !offload_.is_busy)) prefetch_.start(time());
  }

  [[nodiscard]] double compute_speed() const {
    const double speed = link_.compute_speed_while_moving;
    return (offload_.is_busy ? speed : 1) * (prefetch_.is_busy ? speed : 1) *
           (far_.is_busy ? link_.compute_speed_while_updating : 1);
  }

  // Advances to the next end of anything; simultaneous ends are handled together.
  void advance() {
    const LinkShares shares = exchange_.shares(offload_.is_busy, prefetch_.is_busy);
    const double speed = compute_speed() * shares.compute;
    double step = std::numeric_limits<double>::infinity();
    if (compute_.is_busy) step = std::min(step, compute_.left / speed);
    if (offload_.is_busy) step = std::min(step, offload_.left / shares.offload);
    if (prefetch_.is_busy) step = std::min(step, prefetch_.left / shares.prefetch);
    if (far_.is_busy) step = std::min(step, far_.left);
    if (exchange_.is_busy()) step = std::min(step, exchange_.time_left(shares));
    now_ += step;
    pass(compute_, step * speed);
    pass(offload_, step * shares.offload);
    pass(prefetch_, step * shares.prefetch);
    pass(far_, step);
    if (exchange_.pass(step, shares)) timeline_.exchanges[exchange_.ended() - 1].end = time();
  }

  void pass(Queue& queue, double work) const {
    constexpr double kRounding = 1e-6;  // of a nanosecond
    if (!queue.is_busy) return;
    queue.left -= work;
    if (queue.left <= kRounding) queue.end(time());
  }

  // Slow links and large graphs may exceed the range of nanoseconds.
  [[nodiscard]] Nanoseconds time() const {
    constexpr double kEnd = 0x1p62;
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): never negative, and called for every entry
    return Nanoseconds{static_cast<std::int64_t>(std::min(now_, kEnd) + 0.5)};
  }

  const Plan& plan_;
  LinkProfile link_;
  Timeline timeline_;
  Queue compute_;
  Queue offload_;
  Queue prefetch_;
  Queue far_;
  ExchangeLane exchange_;
  double now_ = 0;
};

}  // namespace

Timeline simulate(const Plan& plan, const Profile& profile, const SimulateOptions& options) {
  um::expects(plan.residency == Residency::kPlanned, "page faults depend on the graph");
  return Simulation{plan, profile, options}.run();
}

Timeline simulate(const TaskGraph& graph, const Plan& plan, const Profile& profile,
                  const SimulateOptions& options) {
  if (plan.residency == Residency::kPlanned) return simulate(plan, profile, options);
  return page_on_demand(graph, plan, profile, options).timeline;
}

}  // namespace spillway::prefetch

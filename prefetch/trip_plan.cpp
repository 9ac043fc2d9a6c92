#include "prefetch/trip_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "prefetch/algorithm_choice.h"
#include "prefetch/liveness.h"
#include "prefetch/offload_plan.h"
#include "um/error.h"

namespace spillway::prefetch {

using um::Bytes;

TripPlanner::TripPlanner(const Problem& problem)
    : problem_{problem},
      occupancy_{problem.graph, problem.page},
      frugal_{runs_in_order(problem.graph)},
      lives_{find_lives(problem.graph, frugal_)} {}

std::vector<TaskRun> TripPlanner::fastest() const {
  return fastest_runs(problem_.graph, problem_.profile);
}

std::vector<TaskRun> TripPlanner::fastest_beside(std::span<const RoundTrip> trips) const {
  const std::vector<Bytes> near = near_during(frugal_, trips);
  const Bytes pool = occupancy_.pool(problem_.budget);
  std::vector<TaskRun> runs = frugal_;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Bytes first =
        occupancy_.workspace_size(problem_.graph[runs[i].task].algorithms[0].workspace);
    const Bytes room = um::saturating_difference(pool + first, near[i]);
    runs[i].algorithm = fastest_within(problem_, occupancy_, runs[i].task, room);
  }
  return runs;
}

std::vector<Bytes> TripPlanner::near_during(std::span<const TaskRun> runs,
                                            std::span<const RoundTrip> trips) const {
  return prefetch::near_during(trips, demand(problem_.graph, occupancy_, runs, lives_));
}

bool TripPlanner::keeps_budget(std::span<const TaskRun> runs,
                               std::span<const RoundTrip> trips) const {
  const Bytes pool = occupancy_.pool(problem_.budget);
  return occupancy_.always_near() <= problem_.budget &&
         fits(trips, demand(problem_.graph, occupancy_, runs, lives_), pool);
}

std::optional<Plan> TripPlanner::plan(std::vector<TaskRun> runs,
                                      std::vector<RoundTrip> trips) const {
  if (!keeps_budget(runs, trips)) return std::nullopt;
  Plan plan = empty_plan(problem_, std::move(runs));
  add_moves(std::move(trips), problem_.profile.link, plan);
  return plan;
}

std::optional<Plan> TripPlanner::plan_eagerly(std::vector<TaskRun> runs,
                                              std::vector<RoundTrip> trips) const {
  if (!keeps_budget(runs, trips)) return std::nullopt;
  leave_when_needed(runs, trips);
  std::vector<Absence> absences;
  absences.reserve(trips.size());
  for (const RoundTrip& trip : trips) absences.push_back(trip.absence);
  const std::vector<Bytes> live = demand(problem_.graph, occupancy_, runs, lives_);
  const Bytes pool = occupancy_.pool(problem_.budget);
  return plan(std::move(runs), return_early(absences, live, pool));
}

Infeasible TripPlanner::infeasible(std::span<const RoundTrip> trips) const {
  return need_most(occupancy_, frugal_, near_during(frugal_, trips));
}

void TripPlanner::leave_late(std::span<const TaskRun> runs, std::span<const Position> limits,
                             std::span<RoundTrip> trips) const {
  um::expects(limits.size() == trips.size(), "one limit for each trip");
  const Bytes pool = occupancy_.pool(problem_.budget);
  std::vector<Bytes> near = near_during(runs, trips);
  for (std::size_t i = 0; i < trips.size(); ++i) {
    Absence& absence = trips[i].absence;
    const Position limit = std::min(limits[i], trips[i].back);
    while (absence.needed < limit && near[absence.needed] + absence.size <= pool) {
      near[absence.needed++] += absence.size;
    }
  }
}

void TripPlanner::leave_when_needed(std::span<const TaskRun> runs,
                                    std::span<RoundTrip> trips) const {
  const Bytes pool = occupancy_.pool(problem_.budget);
  std::vector<Bytes> near = demand(problem_.graph, occupancy_, runs, lives_);
  std::size_t oldest = 0;  // of those that may still stay
  for (Position p = 0; p < near.size(); ++p) {
    while (near[p] > pool && oldest < trips.size() && trips[oldest].absence.last < p) {
      RoundTrip& trip = trips[oldest++];
      trip.absence.needed = std::min(p, trip.back);
      for (Position q = p; q < trip.back; ++q) near[q] -= trip.absence.size;
    }
  }
  for (RoundTrip& trip : trips.subspan(oldest)) trip.absence.needed = trip.back;
}

}  // namespace spillway::prefetch

#include "prefetch/moves/timed_schedule.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "prefetch/moves/schedule.h"
#include "prefetch/simulate/exchange_lane.h"
#include "um/error.h"

namespace spillway::prefetch {

Room::Room(std::span<const um::Bytes> near)
    : leaves_{std::bit_ceil(std::max<Position>(1, static_cast<Position>(near.size())))},
      nodes_(2 * static_cast<std::size_t>(leaves_)) {
  for (std::size_t i = 0; i < near.size(); ++i) {
    nodes_[leaves_ + i].most = static_cast<Signed>(near[i].count());
  }
  for (std::size_t i = leaves_ - 1; i > 0; --i) {
    nodes_[i].most = std::max(nodes_[2 * i].most, nodes_[2 * i + 1].most);
  }
}

bool Room::has(um::Bytes size, um::Bytes pool, Position begin, Position end) const {
  return is_within(static_cast<Signed>(pool.count()) - static_cast<Signed>(size.count()), begin,
                   end, whole());
}

void Room::take(um::Bytes size, Position begin, Position end) {
  add(static_cast<Signed>(size.count()), begin, end, whole());
}

void Room::give(um::Bytes size, Position begin, Position end) {
  add(-static_cast<Signed>(size.count()), begin, end, whole());
}

void Room::add(Signed size, Position begin, Position end, const Span& at) {
  if (end <= at.begin || at.end <= begin) return;
  Node& node = nodes_[at.node];
  if (begin <= at.begin && at.end <= end) {
    node.most += size;
    node.all += size;
    return;
  }
  const Position middle = at.begin + (at.end - at.begin) / 2;
  add(size, begin, end, {.node = 2 * at.node, .begin = at.begin, .end = middle});
  add(size, begin, end, {.node = 2 * at.node + 1, .begin = middle, .end = at.end});
  node.most = node.all + std::max(nodes_[2 * at.node].most, nodes_[2 * at.node + 1].most);
}

bool Room::is_within(Signed limit, Position begin, Position end, const Span& at) const {
  const Node& node = nodes_[at.node];
  if (end <= at.begin || at.end <= begin || node.most <= limit) return true;
  if (begin <= at.begin && at.end <= end) return false;
  const Position middle = at.begin + (at.end - at.begin) / 2;
  limit -= node.all;
  return is_within(limit, begin, end, {.node = 2 * at.node, .begin = at.begin, .end = middle}) &&
         is_within(limit, begin, end, {.node = 2 * at.node + 1, .begin = middle, .end = at.end});
}

std::vector<FarInterval> needed_of(std::span<const FarInterval> far_intervals, um::Bytes pool,
                                   Room& room) {
  std::vector<FarInterval> result{far_intervals.begin(), far_intervals.end()};
  std::ranges::stable_sort(result, {}, &FarInterval::next);
  std::erase_if(result, [&](const FarInterval& each) {
    if (each.starts_far || each.to_end || each.is_wanted || each.is_renewal) return false;
    if (!room.has(each.size, pool, each.needed, each.next)) return false;
    room.take(each.size, each.needed, each.next);
    return true;
  });
  return result;
}

namespace {

using um::Bytes;
using Signed = std::int64_t;

constexpr std::uint32_t kNever = ~0U;

class TimedExecution {
 public:
  TimedExecution(std::span<const FarInterval> far_intervals, const NearDemand& demand,
                 const Profile& profile, const MoveOrder& order,
                 std::span<const FarInterval> copies, Plan& plan)
      : demand_{demand.runs},
        at_end_{demand.at_end},
        pool_{demand.pool},
        profile_{profile},
        link_{profile.link},
        order_{order},
        plan_{plan},
        room_{without(demand.runs, far_intervals)},
        far_intervals_{needed_of(far_intervals, pool_, room_)},
        places_{
            add_offloads(far_intervals_, {}, link_, copies, !order.in_parts, plan, counted_on_)},
        to_leave_(std::move(plan.offloads)),
        leaving_(to_leave_.size()),
        pending_(to_leave_.size()),
        freed_by_(to_leave_.size(), kNever),
        uses_(demand_.size() + 1),
        landed_(demand_.size()),
        exchange_{plan, profile} {
    for (std::size_t i = 0; i < far_intervals_.size(); ++i) {
      const FarInterval& each = far_intervals_[i];
      if (places_[i] == kLeftOut) continue;
      if (each.starts_far) {
        far_ += each.size;
      } else {
        leaving_[places_[i] - 1] = {.read_until = each.from_start ? 0 : each.last + 1,
                                    .needed = each.needed,
                                    .next = each.next};
      }
      if (each.is_renewal) {
        renewed_.push_back(i);
      } else if (!each.to_end) {
        returning_.push_back(i);
        ++uses_[each.next];
      }
    }
    plan_.offloads.clear();
    std::iota(pending_.begin(), pending_.end(), 0U);
    for (std::size_t p = 1; p < uses_.size(); ++p) uses_[p] += uses_[p - 1];
    begin_of_.push_back(0);
    for (const TaskRun& run : plan_.runs) {
      begin_of_.push_back(begin_of_.back() + static_cast<double>(profile(run).count()));
    }
    away_ = signed_count(far_);
  }

  void run() {
    while (true) {
      while (start_something()) {
      }
      if (!compute_.is_busy && !offload_.is_busy && !prefetch_.is_busy && !exchange_.is_busy()) {
        break;
      }
      advance();
    }
    um::expects(ended_ == demand_.size() && offloaded_ == leaving_.size() &&
                    returned_ == returning_.size() && renewals_begun_ == renewed_.size(),
                "far intervals cover what does not fit");
    add_run_conditions(demand_, pool_, far_, landed_, plan_);
  }

 private:
  struct Leaving {
    Position read_until = 0;  // number of ended runs after which it is unused
    Position needed = 0;
    Position next = 0;
  };

  bool start_something() {
    // Tries all: one of them may be what another waits for.
    const bool exchanges = exchange_.start(ended_);
    const bool runs = start_run();
    const bool comes_first = order_.prefetches_first && start_prefetch();
    const bool leaves = start_offload();
    const bool comes = start_prefetch();
    return exchanges || runs || comes_first || leaves || comes;
  }

  bool start_run() {
    if (compute_.is_busy || ended_ == demand_.size()) return false;
    if (returned_ < uses_[ended_]) return false;
    if (exchange_.ended() < plan_.runs[ended_].after_exchanges) return false;
    if (signed_count(demand_[ended_]) - away_ > signed_count(pool_)) return false;
    compute_.start(profile_(plan_.runs[ended_]));
    return true;
  }

  [[nodiscard]] bool link_is_free(const VirtualLane& lane, const VirtualLane& other) const {
    return !lane.is_busy && (link_.is_duplex || !other.is_busy);
  }

  bool start_offload() {
    if (front_ == pending_.size() || !link_is_free(offload_, prefetch_)) return false;
    const auto chosen = choose_offload();
    if (chosen == pending_.end()) return false;
    Move move = to_leave_[*chosen];
    offload_.start(time_of(move));
    if (order_.prefetches_first && !link_.is_duplex) {
      move.after.prefetches = static_cast<std::uint32_t>(plan_.prefetches.size());
    }
    plan_.offloads.push_back(move);
    left_.push_back(*chosen);
    std::rotate(first_pending(), chosen, chosen + 1);
    ++front_;
    return true;
  }

  [[nodiscard]] um::Nanoseconds time_of(const Move& move) const {
    return move.is_clean ? um::Nanoseconds{0} : link_.latency + move.size / link_.offload;
  }
  // Returns how many runs have ended when it can begin.
  [[nodiscard]] Position begin_of(std::uint32_t offload) const {
    const Move& move = to_leave_[offload];
    return link_.copies_while_read ? move.after.runs : move.frees_after();
  }

  // Returns the first offload that can begin without delaying those that it overtakes. Rooms become
  // free in the order of offloads, so its own must be free before theirs are counted on.
  [[nodiscard]] std::vector<std::uint32_t>::iterator choose_offload() {
    constexpr std::size_t kOvertaken = 16;  // at most
    const double computed = begin_of_[ended_] + (compute_.is_busy ? compute_done() : 0);
    Position counted_on = std::numeric_limits<Position>::max();
    double idle = std::numeric_limits<double>::infinity();  // until an overtaken one could begin
    const std::size_t tried = std::min(pending_.size() - front_, kOvertaken + 1);
    const auto end = first_pending() + static_cast<std::ptrdiff_t>(tried);
    for (auto each = first_pending(); each != end; ++each) {
      const bool can_begin = begin_of(*each) <= ended_;
      const bool makes_none_wait =
          order_.is_eager || static_cast<double>(time_of(to_leave_[*each]).count()) <= idle;
      if (can_begin && leaving_[*each].read_until <= counted_on && makes_none_wait) return each;
      counted_on = std::min(counted_on, leaving_[*each].needed);
      if (!can_begin) idle = std::min(idle, begin_of_[begin_of(*each)] - computed);
    }
    return pending_.end();
  }
  [[nodiscard]] std::vector<std::uint32_t>::iterator first_pending() {
    return pending_.begin() + static_cast<std::ptrdiff_t>(front_);
  }
  // Returns how much of the current run is done, in undisturbed time.
  [[nodiscard]] double compute_done() const {
    return begin_of_[ended_ + 1] - begin_of_[ended_] - compute_.left;
  }

  bool start_prefetch() {
    if (!link_is_free(prefetch_, offload_)) return false;
    return start_next(returning_, begun_) || start_next(renewed_, renewals_begun_);
  }

  // Starts the next of the prefetches `to_come`; `begun` have begun.
  bool start_next(const std::vector<std::size_t>& to_come, std::size_t& begun) {
    if (begun == to_come.size() || !has_room(far_intervals_[to_come[begun]])) return false;
    Move move{.data = far_intervals_[to_come[begun]].data,
              .offset = far_intervals_[to_come[begun]].offset,
              .after = {.runs = ended_, .offloads = freed_}};
    const Position next = far_intervals_[to_come[begun]].next;
    while (begun < to_come.size()) {
      const FarInterval& each = far_intervals_[to_come[begun]];
      const bool goes_on =
          each.data == move.data && each.next == next && each.offset == move.offset + move.size;
      if (!goes_on || !has_room(each)) break;
      room_.take(each.size, ended_, each.next);
      away_ -= signed_count(each.size);
      move.size += each.size;
      ++begun;
    }
    plan_.prefetches.push_back(move);
    if (next < landed_.size()) {
      landed_[next] = static_cast<std::uint32_t>(plan_.prefetches.size());
    }
    prefetch_.start(link_.latency + move.size / link_.prefetch);
    return true;
  }

  // Returns true if the block has left, and has room from now until its use.
  [[nodiscard]] bool has_room(const FarInterval& each) const {
    const auto index = static_cast<std::size_t>(&each - far_intervals_.data());
    if (!each.starts_far && freed_by_[places_[index] - 1] > freed_) {
      return false;
    }
    // Between two runs, live blocks are those of the next run at most.
    const Bytes live = ended_ < demand_.size() ? demand_[ended_] : at_end_;
    if (signed_count(live) - away_ + signed_count(each.size) > signed_count(pool_)) return false;
    return room_.has(each.size, pool_, ended_, each.next);
  }

  // Advances to the next end of anything; simultaneous ends are handled together.
  void advance() {
    const double moving = link_.compute_speed_while_moving;
    const LinkShares shares = exchange_.shares(offload_.is_busy, prefetch_.is_busy);
    const double speed =
        shares.compute * (offload_.is_busy ? moving : 1) * (prefetch_.is_busy ? moving : 1);
    double step = std::numeric_limits<double>::infinity();
    if (compute_.is_busy) step = std::min(step, compute_.left / speed);
    if (offload_.is_busy) step = std::min(step, offload_.left / shares.offload);
    if (prefetch_.is_busy) step = std::min(step, prefetch_.left / shares.prefetch);
    if (exchange_.is_busy()) step = std::min(step, exchange_.time_left(shares));
    now_ += step;
    if (compute_.pass(step * speed)) ++ended_;
    if (offload_.pass(step * shares.offload)) ++offloaded_;
    if (prefetch_.pass(step * shares.prefetch)) returned_ = begun_;
    exchange_.pass(step, shares);
    free_rooms();
  }

  // Counts offloads that are transferred and no longer read.
  void free_rooms() {
    for (; freed_ < offloaded_ && leaving_[left_[freed_]].read_until <= ended_; ++freed_) {
      const Leaving& leaving = leaving_[left_[freed_]];
      const Bytes size = plan_.offloads[freed_].size;
      room_.give(size, ended_, std::min(leaving.needed, leaving.next));
      away_ += signed_count(size);
      freed_by_[left_[freed_]] = freed_ + 1;
    }
  }

  std::span<const Bytes> demand_;
  Bytes at_end_;
  Bytes pool_;
  const Profile& profile_;
  LinkProfile link_;
  MoveOrder order_;
  Plan& plan_;
  Room room_;  // with counted-on room, and blocks that have left or begun to return by now
  std::vector<FarInterval> far_intervals_;  // in order of next use
  std::vector<std::uint32_t> counted_on_;
  std::vector<std::uint32_t> places_;    // by far interval: its offload in to_leave_, and one
  std::vector<Move> to_leave_;           // all offloads, in order of need
  std::vector<Leaving> leaving_;         // by offload in to_leave_
  std::vector<std::uint32_t> pending_;   // offloads in to_leave_ that have not begun
  std::size_t front_ = 0;                // index into pending_, which keeps started ones, too
  std::vector<std::uint32_t> left_;      // started offloads, in that order
  std::vector<std::uint32_t> freed_by_;  // by offload in to_leave_: how many are free with it
  std::vector<double> begin_of_;         // by run: when it begins if no run waits
  std::vector<std::size_t> returning_;   // far intervals that return
  std::vector<std::size_t> renewed_;     // renewals, which return for no run
  std::vector<std::uint32_t> uses_;      // by run: far intervals that must be back
  std::vector<std::uint32_t> landed_;    // by run: prefetches that must have ended
  Bytes far_;                            // when the step begins
  Signed away_ = 0;                      // now
  VirtualLane compute_;
  VirtualLane offload_;
  VirtualLane prefetch_;
  ExchangeLane exchange_;
  double now_ = 0;
  Position ended_ = 0;           // runs
  std::uint32_t offloaded_ = 0;  // offloads that have ended
  std::uint32_t freed_ = 0;      // offloads with free room
  std::size_t begun_ = 0;        // far intervals on the way back, or back
  std::size_t renewals_begun_ = 0;
  std::size_t returned_ = 0;  // far intervals that are back
};

}  // namespace

void schedule_in_time(std::span<const FarInterval> far_intervals, const NearDemand& demand,
                      const Profile& profile, const MoveOrder& order, Plan& plan,
                      std::span<const FarInterval> copies) {
  TimedExecution{far_intervals, demand, profile, order, copies, plan}.run();
}

}  // namespace spillway::prefetch

// Random programs, followed with moves that end in any order, with and without deviations.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/learned/learn.h"
#include "prefetch/learned/move_issuer.h"
#include "prefetch/learned/replayer.h"
#include "tests/prefetch/learned/repeating_program.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using Kind = RecordedEvent::Kind;

// A memory with a replay plan's pool, page by page. Commands and touches bring pages near. When
// touches exceed the pool, it evicts the least recently used or arrived pages. Records the first
// wrong command.
class NearAccount {
 public:
  explicit NearAccount(const ReplayPlan& replay_plan)
      : page_{replay_plan.plan.page.count()},
        pool_{BlockSizes{replay_plan.step.graph, replay_plan.plan.page}
                  .pool(replay_plan.plan.budget)
                  .count()} {
    const BlockSizes block_sizes{replay_plan.step.graph, replay_plan.plan.page};
    for (const auto& [name, data] : replay_plan.step.blocks) {
      Block& block = blocks_[name];
      block.size = replay_plan.step.graph[data].size;
      block.pages.resize(block_sizes.size(data).count() / page_);
    }
    for (const auto& [name, block] : blocks_) {
      if (!name.is_fresh) touch(name, block.size);
    }
  }

  void issue(const PrefetchCommand& order) {
    Block& block = blocks_.at(order.name);
    const bool comes = order.to == um::MemoryTier::kNear;
    if (order.offset.count() % page_ != 0) wrong("an order within a page");
    if (order.size == um::Bytes{} || order.offset + order.size > block.size) {
      wrong("an order that leaves its block");
    }
    const std::uint64_t begin = order.offset.count() / page_;
    const std::uint64_t end = (order.offset + order.size).count() / page_;
    // A command issued twice would find both ends of its range already at their target.
    for (const std::uint64_t i : {begin, end - 1}) {
      const State state = block.pages[i].state;
      if (comes ? state != State::kFar : state == State::kFar || state == State::kLeaving) {
        wrong("an order twice");
      }
    }
    for (std::uint64_t i = begin; i < end; ++i) {
      Page& page = block.pages[i];
      if (comes ? page.state == State::kFar
                : page.state == State::kNear || page.state == State::kComing) {
        page = {.state = comes ? State::kComing : State::kLeaving, .by = order.ticket};
      }
    }
    if (comes && near() > pool_) wrong("more near than the budget");
  }

  void complete(const PrefetchCommand& order) {
    Block& block = blocks_.at(order.name);
    for (Page& page : block.pages) {
      if (page.by != order.ticket) continue;
      page = {.state = page.state == State::kComing ? State::kNear : State::kFar};
      if (page.state == State::kNear) block.last_use = ++uses_;
    }
  }

  void touch(BlockName name, um::Bytes size) {
    const auto found = blocks_.find(name);
    if (found == blocks_.end() || found->second.size != size) return;
    for (Page& page : found->second.pages) page = {.state = State::kNear};
    found->second.last_use = ++uses_;
    while (near() > pool_ && evict_one(name)) {
    }
  }
  void free(BlockName name) {
    const auto found = blocks_.find(name);
    if (found == blocks_.end()) return;
    for (Page& page : found->second.pages) page = {};
  }

  [[nodiscard]] std::uint64_t near() const {
    std::uint64_t pages = 0;
    for (const auto& [name, block] : blocks_) {
      for (const Page& page : block.pages) pages += page.state != State::kFar ? 1 : 0;
    }
    return pages * page_;
  }
  [[nodiscard]] const std::string& first_wrong() const { return wrong_; }

 private:
  enum class State { kFar, kComing, kNear, kLeaving };
  struct Page {
    State state = State::kFar;
    std::uint64_t by = 0;  // ticket
  };
  struct Block {
    um::Bytes size;
    std::vector<Page> pages;
    std::uint64_t last_use = 0;
  };

  // Evicts the first page of the least recently used block. Returns false when none may leave.
  bool evict_one(BlockName kept) {
    Page* victim = nullptr;
    std::uint64_t oldest = 0;
    for (auto& [name, block] : blocks_) {
      if (name == kept || (victim != nullptr && block.last_use >= oldest)) continue;
      for (Page& page : block.pages) {
        if (page.state != State::kNear) continue;
        victim = &page;
        oldest = block.last_use;
        break;
      }
    }
    if (victim != nullptr) victim->state = State::kFar;
    return victim != nullptr;
  }

  void wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  std::uint64_t page_;
  std::uint64_t pool_;
  std::map<BlockName, Block> blocks_;
  std::uint64_t uses_ = 0;
  std::string wrong_;
};

// Frequency of actions that are left out, done twice or replaced: one in `one_in`; 0 for never.
struct Deviation {
  std::uint64_t one_in = 0;
};

// A program, its replayer, and a memory with moves that end at random times.
class FollowedProgram {
 public:
  FollowedProgram(Program program, std::mt19937_64& random)
      : program_{std::move(program)}, random_{random}, haste_{random() % 5} {}

  // Returns false when the program is not learned.
  bool learn_it(um::Bytes budget) {
    static_cast<void>(replayer.mark(0ns));
    iterate({});
    iterate({});
    if (!replayer.is_ready()) return false;
    auto result = learn(replayer.recorded(),
                        {.budget = budget, .page = kPage, .link = toy_link(), .together = 5ns});
    const bool is_learned = std::holds_alternative<ReplayPlan>(result);
    if (is_learned) replay_plan_ = std::get<ReplayPlan>(result);
    replayer.load(std::move(result));
    if (is_learned) iterate({});
    return is_learned;
  }

  void iterate(const Deviation& deviation) {
    lives_.assign(program_.sizes.size(), std::nullopt);
    for (const Program::Action& action : program_.actions) {
      const bool deviates = deviation.one_in != 0 && random_() % deviation.one_in == 0;
      const std::uint64_t way = deviates ? random_() % 4 : 0;
      if (!deviates || way != 1 || action.kind != Kind::kTouch) act(action, deviates && way == 3);
      if (deviates && way != 1) {
        act({.block = random_() % program_.sizes.size(), .gap = action.gap}, false);
      }
      end_some();
    }
    if (replay_plan_ && !account_) account_.emplace(*replay_plan_);  // following begins
    take(replayer.mark(now_));
  }

  // Runs an iteration with moves that take no time.
  void iterate_at_once() {
    is_instant_ = true;
    iterate({});
    end_all();
    is_instant_ = false;
  }

  void end_all() {
    while (!under_way_.empty()) end_one();
  }
  // Returns "" as long as everything is correct.
  [[nodiscard]] std::string wrong() const {
    if (!account_ || !account_->first_wrong().empty()) return account_->first_wrong();
    if (!is_following(replayer) && !replayer.near().count()) return "";
    return account_->near() == replayer.near().count() ? "" : "the accounts differ";
  }

  Replayer replayer{{.max_misses = 6, .relearn_after = 1000}};

 private:
  struct Live {
    BlockName name;  // in the replay plan
    um::Bytes size;
    std::uint64_t id;
  };

  void act(const Program::Action& action, bool has_other_size) {
    now_ += action.gap;
    if (action.kind == Kind::kAllocate) {
      const um::Bytes size = program_.sizes[action.block] + (has_other_size ? kPage : um::Bytes{});
      replayer.allocate(++last_id_, size);
      lives_[action.block] = {program_.name(action.block), size, last_id_};
      return;
    }
    const auto block = live(action.block);
    if (!block) return;
    if (action.kind == Kind::kFree) {
      lives_[action.block].reset();
      if (account_) account_->free(block->name);
      take(replayer.free(block->id));
      return;
    }
    take(replayer.touch(
        {.block = block->id, .size = block->size, .access = action.access, .at = now_}));
    if (account_) account_->touch(block->name, block->size);
  }

  // Returns nullopt for a fresh block that is not live.
  [[nodiscard]] std::optional<Live> live(std::size_t block) const {
    if (block >= program_.persistent) return lives_[block];
    return Live{program_.name(block), program_.sizes[block], 100 + block};
  }

  void take(const std::vector<PrefetchCommand>& commands) {
    for (const PrefetchCommand& command : commands) {
      account_->issue(command);
      under_way_.push_back(command);
    }
  }

  void end_some() {
    if (is_instant_) end_all();
    for (std::uint64_t i = 0; i < haste_ && !under_way_.empty(); ++i) {
      if (random_() % 2 == 0) end_one();
    }
  }
  void end_one() {
    const auto chosen =
        static_cast<std::ptrdiff_t>(is_instant_ ? 0 : random_() % under_way_.size());
    const PrefetchCommand command = under_way_[static_cast<std::size_t>(chosen)];
    under_way_.erase(under_way_.begin() + chosen);
    account_->complete(command);
    take(replayer.complete(command.ticket));
  }

  Program program_;
  std::mt19937_64& random_;
  std::uint64_t haste_;
  std::optional<ReplayPlan> replay_plan_;
  std::optional<NearAccount> account_;
  std::vector<std::optional<Live>> lives_;
  std::uint64_t last_id_ = 1000;
  std::vector<PrefetchCommand> under_way_;
  um::Nanoseconds now_{0};
  bool is_instant_ = false;
};

// Returns a budget between the smallest that works and everything that the program touches.
um::Bytes random_budget(const Program& program, std::mt19937_64& random) {
  um::Bytes all;
  for (const um::Bytes size : program.sizes) all += um::round_up(size, kPage);
  return pages(2 + random() % (all / kPage));
}

void check_sums(const ReplayerCounters& counters) {
  RC_ASSERT(counters.iterations ==
            counters.recorded + counters.followed + counters.abandoned + counters.idle);
  RC_ASSERT(counters.touches == counters.hits + counters.misses + counters.unguided);
}

RC_GTEST_PROP(FollowedProgram, ComesToTheEndOfEachIterationInItsBudget, ()) {
  std::mt19937_64 random{*rc::gen::arbitrary<std::uint64_t>()};
  const Program program = random_program(random);
  FollowedProgram followed{program, random};
  const bool is_learned = followed.learn_it(random_budget(program, random));
  RC_CLASSIFY(is_learned, "followed");
  if (!is_learned) return;
  std::uint64_t touches = 0;
  for (const Program::Action& action : program.actions) touches += action.kind == Kind::kTouch;
  constexpr std::uint64_t kIterations = 6;
  for (std::uint64_t i = 1; i <= kIterations; ++i) {
    followed.iterate({});
    RC_ASSERT(followed.wrong() == "");
    RC_ASSERT(followed.replayer.counters().followed == i);
    RC_ASSERT(followed.replayer.counters().hits == i * touches);
  }
  followed.end_all();
  RC_ASSERT(followed.wrong() == "");
  check_sums(followed.replayer.counters());
  RC_ASSERT(followed.replayer.counters().misses == 0U);
}

RC_GTEST_PROP(FollowedProgram, MayDeviateAnyhow, ()) {
  std::mt19937_64 random{*rc::gen::arbitrary<std::uint64_t>()};
  const Program program = random_program(random);
  FollowedProgram followed{program, random};
  const bool is_learned = followed.learn_it(random_budget(program, random));
  if (!is_learned) return;
  for (int i = 0; i < 8; ++i) {
    followed.iterate({.one_in = 4 + 8 * (random() % 3)});
    RC_ASSERT(followed.wrong() == "");
    check_sums(followed.replayer.counters());
  }
  RC_CLASSIFY(followed.replayer.counters().abandoned > 0, "abandoned");
  RC_CLASSIFY(followed.replayer.counters().followed > 0, "followed");
  // The program returns to the learned pattern.
  followed.end_all();
  followed.iterate({});
  const std::uint64_t before = followed.replayer.counters().followed;
  followed.iterate({});
  RC_ASSERT(followed.replayer.counters().followed == before + 1);
  RC_ASSERT(followed.wrong() == "");
}

// The counters of one iteration.
using Deeds = std::array<std::uint64_t, 3>;

Deeds deeds_of(FollowedProgram& followed) {
  const ReplayerCounters before = followed.replayer.counters();
  followed.iterate_at_once();
  const ReplayerCounters& after = followed.replayer.counters();
  return {after.prefetches - before.prefetches, after.offloads - before.offloads,
          after.late - before.late};
}

// With moves that end at once every iteration eventually does the same. If faults serve some
// touches, evictions may make a few iterations alternate.
RC_GTEST_PROP(FollowedProgram, SettlesIntoASteadyState, ()) {
  std::mt19937_64 random{*rc::gen::arbitrary<std::uint64_t>()};
  const Program program = random_program(random);
  FollowedProgram followed{program, random};
  if (!followed.learn_it(random_budget(program, random))) return;
  followed.end_all();
  for (int i = 0; i < 16; ++i) followed.iterate_at_once();
  std::vector<Deeds> seen;
  for (int i = 0; i < 24; ++i) seen.push_back(deeds_of(followed));
  std::ptrdiff_t turns = 1;
  while (turns <= 8 && !std::equal(seen.begin() + turns, seen.end(), seen.begin())) ++turns;
  RC_ASSERT(turns <= 8);
  RC_CLASSIFY(turns == 1, "all the same");
}

}  // namespace
}  // namespace spillway::prefetch

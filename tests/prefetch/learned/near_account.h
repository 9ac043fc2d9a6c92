#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/learned/learn.h"
#include "prefetch/learned/move_issuer.h"

namespace spillway::prefetch::testing {

/// A memory with a replay plan's pool, page by page. Commands and touches bring pages near. When
/// touches exceed the pool, it evicts the least recently used or arrived pages. Records the first
/// wrong command.
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

  /// Evicts the first page of the least recently used block. Returns false when none may leave.
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

}  // namespace spillway::prefetch::testing

#pragma once

#include <cstddef>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/prefetch/planned.h"
#include "um/bytes.h"
#include "um/hints.h"

namespace spillway::prefetch::testing {

/// Records every hint as text: "populate 2+1" is populate() of one page from page 2 on. Moves end
/// at once. If launches can wait, prefetches end when the test says so.
class RecordedHints final : public um::Hints {
 public:
  explicit RecordedHints(um::Range slab) : slab_{slab} {}

  void prefetch(um::Range range, um::MemoryTier tier, um::Completion done) override {
    note((tier == um::MemoryTier::kNear ? "prefetch " : "offload ") + pages_of(range));
    if (launches_can_wait && tier == um::MemoryTier::kNear) {
      const std::lock_guard lock{mutex_};
      under_way_.push_back(std::move(done));
    } else {
      done(failure);
    }
  }
  [[nodiscard]] bool lets_launches_wait(um::Range range) override {
    if (launches_can_wait) note("wait " + pages_of(range));
    return launches_can_wait;
  }
  void end_prefetches() {
    std::vector<um::Completion> ended;
    {
      const std::lock_guard lock{mutex_};
      ended.swap(under_way_);
    }
    for (const um::Completion& done : ended) done(failure);
  }
  void populate(um::Range range) override { note("populate " + pages_of(range)); }
  void discard(um::Range range) override { note("discard " + pages_of(range)); }
  void advise(um::Range range, um::Advice /*advice*/) override {
    note("advise " + pages_of(range));
  }
  void begin_use(std::span<const um::Use> operands) override { note("begin" + uses(operands)); }
  void end_use(std::span<const um::Use> operands) noexcept override {
    note("end" + uses(operands));
  }

  void check() override {
    if (fault_failure != nullptr) std::rethrow_exception(fault_failure);
  }

  [[nodiscard]] std::vector<std::string> log() {
    const std::lock_guard lock{mutex_};
    return log_;
  }
  [[nodiscard]] std::vector<std::string> take_log() {
    const std::lock_guard lock{mutex_};
    return std::exchange(log_, {});
  }
  bool launches_can_wait = false;
  std::exception_ptr failure;        // of every move
  std::exception_ptr fault_failure;  // of a page fault

 private:
  void note(std::string entry) {
    const std::lock_guard lock{mutex_};
    log_.push_back(std::move(entry));
  }
  [[nodiscard]] std::string pages_of(um::Range range) const {
    const auto first = static_cast<std::size_t>(range.data() - slab_.data()) / kPage.count();
    return std::to_string(first) + "+" + std::to_string(range.size() / kPage.count());
  }
  [[nodiscard]] std::string uses(std::span<const um::Use> operands) const {
    std::string text;
    for (const um::Use& use : operands) {
      const bool reads = use.access != um::Access::kWrite;
      const bool writes = use.access != um::Access::kRead;
      text += std::string{" "} + (reads ? "r" : "") + (writes ? "w" : "") + pages_of(use.range);
    }
    return text;
  }

  um::Range slab_;
  std::mutex mutex_;
  std::vector<std::string> log_;
  std::vector<um::Completion> under_way_;
};

}  // namespace spillway::prefetch::testing

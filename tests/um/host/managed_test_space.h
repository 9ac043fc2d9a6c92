#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>

#include "tests/um/host/scripted_far.h"
#include "um/host/managed/managed_region.h"

namespace spillway::um {

/// A managed region on scripted far memory, addressed by pages, each known by its first word.
class ManagedTestSpace {
 public:
  ManagedTestSpace(const ManagedOptions& options, Bytes ledger_limit)
      : page_{options.page},
        ledger_{ledger_limit},
        space_{make_managed_region(options, ledger_,
                                   std::make_unique<ScriptedFar>(script_, options.size))} {}

  [[nodiscard]] Range pages(std::size_t first, std::size_t count) {
    return space_->slab().subspan(first * page_.count(), count * page_.count());
  }
  [[nodiscard]] volatile std::uint64_t& word(std::size_t page) {
    return *reinterpret_cast<volatile std::uint64_t*>(pages(page, 1).data());
  }
  [[nodiscard]] volatile std::uint64_t& last_word(std::size_t page) {
    const Range bytes = pages(page, 1);
    return *reinterpret_cast<volatile std::uint64_t*>(bytes.data() + bytes.size() - 8);
  }

  /// Does `work` as a launch that uses `count` pages.
  void use(std::size_t first, std::size_t count, Access access, const std::function<void()>& work) {
    const std::array operands{Use{.range = pages(first, count), .access = access}};
    hints().begin_use(operands);
    work();
    hints().end_use(operands);
  }
  /// Writes the first and the last word of a page, as a launch.
  void write(std::size_t page, std::uint64_t value) {
    use(page, 1, Access::kReadWrite, [&] {
      word(page) = value;
      last_word(page) = value;
    });
  }
  /// Moves `count` pages and waits; what the move's completion got.
  std::exception_ptr move(std::size_t first, std::size_t count, MemoryTier tier) {
    std::promise<std::exception_ptr> promise;
    hints().prefetch(pages(first, count), tier,
                     [&](std::exception_ptr failure) { promise.set_value(std::move(failure)); });
    return promise.get_future().get();
  }

  [[nodiscard]] Hints& hints() { return space_->hints(); }
  [[nodiscard]] Counters counters() const { return space_->counters(); }
  [[nodiscard]] Bytes near_bytes(Range range) const { return space_->near_bytes(range); }
  [[nodiscard]] std::uint64_t pages_in_use() const { return ledger_.in_use() / page_; }
  [[nodiscard]] Bytes page() const { return page_; }
  [[nodiscard]] Ledger& ledger() { return ledger_; }
  [[nodiscard]] FarScript& far() { return script_; }

 private:
  Bytes page_;
  FarScript script_;
  Ledger ledger_;
  std::unique_ptr<ManagedSpace> space_;
};

}  // namespace spillway::um

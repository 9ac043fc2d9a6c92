#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "um/bytes.h"

namespace spillway::um {

/// RAM that stands for a GPU's, keeps aside what has left it, and says in words what an address is:
/// "slab 1+2" is two units of 2 MiB of the memory of kind "slab" from its second unit on.
class RecordedMemory {
 public:
  std::byte* take(const std::string& kind, Bytes size) {
    const std::size_t rounded = (size.count() + kUnit - 1) / kUnit * kUnit;
    std::unique_ptr<std::byte, Free> memory{
        static_cast<std::byte*>(std::aligned_alloc(kUnit, rounded))};
    std::byte* const address = memory.get();
    allocations_[address] = {.kind = kind, .size = rounded, .memory = std::move(memory)};
    return address;
  }
  void give_back(std::byte* address) noexcept { allocations_.erase(address); }

  /// What pages hold leaves with them: until it is brought back, they hold NaNs.
  void send_far(Range range) {
    for_each_unit(range, [&](Range unit) {
      if (far_.contains(unit.data())) return;
      far_.emplace(unit.data(), std::vector<std::byte>{unit.begin(), unit.end()});
      drop(unit);
    });
  }
  void bring_near(Range range) {
    for_each_unit(range, [&](Range unit) {
      const auto found = far_.find(unit.data());
      if (found == far_.end()) return;
      std::ranges::copy(found->second, unit.begin());
      far_.erase(found);
    });
  }
  /// As the host sees it, which may use what is far: `act` finds and changes it.
  void use_on_host(std::span<const Range> ranges, const std::function<void()>& act) {
    std::vector<std::pair<Range, std::vector<std::byte>*>> seen;
    for (auto& [address, content] : far_) {
      const Range unit{address, content.size()};
      const std::less<> before;
      if (std::ranges::any_of(ranges, [&](Range range) {
            return before(range.data(), address + unit.size()) &&
                   before(address, range.data() + range.size());
          })) {
        seen.emplace_back(unit, &content);
      }
    }
    for (const auto& [unit, content] : seen) std::ranges::copy(*content, unit.begin());
    act();
    for (const auto& [unit, content] : seen) {
      content->assign(unit.begin(), unit.end());
      drop(unit);
    }
  }
  /// What pages hold is lost, near and far.
  void discard(std::span<const Range> ranges) {
    for (const Range& range : ranges) {
      for_each_unit(range, [&](Range unit) {
        far_.erase(unit.data());
        drop(unit);
      });
    }
  }

  [[nodiscard]] std::string place(const std::byte* address) const {
    for (const auto& [begin, allocation] : allocations_) {
      const std::less<> before;
      if (before(address, begin) || !before(address, begin + allocation.size)) continue;
      const auto offset = static_cast<std::size_t>(address - begin);
      return allocation.kind + " " +
             (offset % kUnit == 0 ? std::to_string(offset / kUnit) : std::to_string(offset) + " B");
    }
    return "elsewhere";
  }
  [[nodiscard]] std::string units(std::span<const std::byte> range) const {
    return place(range.data()) + "+" +
           (range.size() % kUnit == 0 ? std::to_string(range.size() / kUnit)
                                      : std::to_string(range.size()) + " B");
  }
  [[nodiscard]] std::string units(std::span<const Range> ranges) const {
    std::string text;
    for (const Range& range : ranges) text += " " + units(range);
    return text;
  }

 private:
  struct Free {
    void operator()(std::byte* address) const { std::free(address); }
  };
  struct Allocation {
    std::string kind;
    std::size_t size = 0;
    std::unique_ptr<std::byte, Free> memory;
  };
  static constexpr std::size_t kUnit = 2U << 20U;

  static void drop(Range unit) { std::ranges::fill(unit, std::byte{0xFF}); }  // floats: NaNs

  template <class Visit>
  static void for_each_unit(Range range, const Visit& visit) {
    for (std::size_t at = 0; at < range.size(); at += kUnit) {
      visit(range.subspan(at, std::min(kUnit, range.size() - at)));
    }
  }

  std::map<std::byte*, Allocation> allocations_;
  std::map<std::byte*, std::vector<std::byte>> far_;  // by unit: what it held when it left
};

}  // namespace spillway::um

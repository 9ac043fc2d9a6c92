#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "um/error.h"
#include "um/host/far/far_store.h"
#include "um/host/managed/managed_region.h"

namespace spillway::um {

/// The state shared between a test and a ScriptedFar. Outlives the store.
struct FarScript {
  std::atomic<int> reads{0};
  std::atomic<int> writes{0};
  std::atomic<bool> fails_to_read{false};
  std::atomic<bool> fails_to_write{false};
  std::atomic<bool> holds_reads{false};  ///< reads wait until it is false
};

/// Far memory in a vector that counts its calls and fails on demand.
class ScriptedFar final : public FarStore {
 public:
  ScriptedFar(FarScript& script, Bytes size) : script_{script}, content_(size.count()) {}

  void read(Bytes offset, std::span<std::byte> to) override {
    ++script_.reads;
    while (script_.holds_reads) std::this_thread::yield();
    if (script_.fails_to_read) throw Error{"the test's far memory cannot be read"};
    std::copy_n(content_.data() + offset.count(), to.size(), to.data());
  }
  void write(Bytes offset, std::span<const std::byte> from) override {
    ++script_.writes;
    if (script_.fails_to_write) throw Error{"the test's far memory cannot be written"};
    std::copy_n(from.data(), from.size(), content_.data() + offset.count());
  }
  [[nodiscard]] Bytes size() const override { return Bytes{content_.size()}; }
  [[nodiscard]] std::string description() const override { return "scripted"; }

 private:
  FarScript& script_;
  std::vector<std::byte> content_;
};

/// A managed region on scripted far memory, addressed by pages. The first word of a page identifies
/// it.
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

  /// Runs `work` as a launch that uses `count` pages.
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
  /// Moves `count` pages, waits, and returns the completion's argument.
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

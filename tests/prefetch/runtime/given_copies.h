#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/prefetch/toy.h"
#include "um/hints.h"
#include "um/stream.h"

namespace spillway::prefetch::testing {

/// Copies to and from far memory with addresses, like pinned memory. They end at once and are
/// recorded: "in 2+1" is a prefetch of one page from far page 2.
class AddressedCopies final : public um::Copies {
 public:
  explicit AddressedCopies(um::Bytes far) : far_(far.count()) {}

  void offload(std::span<const std::byte> near, um::Bytes far_offset,
               um::Completion done) override {
    note("out ", far_offset, near.size());
    std::ranges::copy(near, far_.data() + far_offset.count());
    done(nullptr);
  }
  void prefetch(um::Bytes far_offset, um::Range near, um::Completion done) override {
    note("in ", far_offset, near.size());
    std::memcpy(near.data(), far_.data() + far_offset.count(), near.size());
    done(nullptr);
  }
  [[nodiscard]] um::Range far() override { return far_; }
  [[nodiscard]] std::vector<std::string> take_log() {
    const std::lock_guard lock{mutex_};
    return std::exchange(log_, {});
  }

 private:
  void note(const std::string& direction, um::Bytes offset, std::size_t size) {
    const std::lock_guard lock{mutex_};
    log_.push_back(direction + std::to_string(offset / kPage) + "+" +
                   std::to_string(um::Bytes{size} / kPage));
  }

  std::mutex mutex_;
  std::vector<std::string> log_;
  std::vector<std::byte> far_;
};

/// Lanes that do their work in submission order, or capture it. Kernels are submitted by launch().
class PlainLanes final : public um::Lanes {
 public:
  void run(const std::function<void()>& give) override { give(); }
  void keep(const std::function<void()>& give) override {
    kept_.clear();
    is_keeping_ = true;
    give();
    is_keeping_ = false;
  }
  [[nodiscard]] bool has_kept() const override { return !kept_.empty(); }
  void run_kept() override {
    for (const auto& work : kept_) work();
  }

  void launch(std::function<void()> work) {
    if (is_keeping_) {
      kept_.push_back(std::move(work));
    } else {
      work();
    }
  }
  void copy(um::Lane /*lane*/, std::span<const std::byte> from, std::byte* to) override {
    launch([from, to] { std::memcpy(to, from.data(), from.size()); });
  }
  [[nodiscard]] Mark mark(um::Lane /*lane*/) override { return 0; }
  void wait(um::Lane /*lane*/, Mark /*mark*/) override {}
  [[nodiscard]] um::Nanoseconds time(Mark /*mark*/) override { return {}; }

 private:
  bool is_keeping_ = false;
  std::vector<std::function<void()>> kept_;
};

}  // namespace spillway::prefetch::testing

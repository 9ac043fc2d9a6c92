#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "um/copies.h"
#include "um/lanes.h"

namespace spillway::prefetch::testing {

/// Copies to and from far memory that has addresses, as pinned memory has. They end at once.
class AddressedCopies final : public um::Copies {
 public:
  explicit AddressedCopies(um::Bytes far) : far_(far.count()) {}

  void offload(std::span<const std::byte> near, um::Bytes far_offset,
               um::Completion done) override {
    std::ranges::copy(near, far_.data() + far_offset.count());
    done(nullptr);
  }
  void prefetch(um::Bytes far_offset, um::Range near, um::Completion done) override {
    std::memcpy(near.data(), far_.data() + far_offset.count(), near.size());
    done(nullptr);
  }
  [[nodiscard]] um::Range far() override { return far_; }

 private:
  std::vector<std::byte> far_;
};

/// Lanes that do their work in the order in which it is given, or keep it. Kernels are given by
/// launch().
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

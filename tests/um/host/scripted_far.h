#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "um/error.h"
#include "um/host/far/far_store.h"

namespace spillway::um {

/// What a test sees of a ScriptedFar, and tells it. Outlives the store.
struct FarScript {
  std::atomic<int> reads{0};
  std::atomic<int> writes{0};
  std::atomic<bool> fails_to_read{false};
  std::atomic<bool> fails_to_write{false};
  std::atomic<bool> holds_reads{false};  ///< reads wait until it is false
};

/// Far memory in a vector that counts its calls and fails when told to.
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

}  // namespace spillway::um

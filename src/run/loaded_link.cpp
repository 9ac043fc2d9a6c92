#include "src/run/loaded_link.h"

#include <array>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <utility>

#include "um/memory.h"

namespace spillway {
namespace {

um::Range range_of(um::Range whole, LinkUnderTest::Part part) {
  return whole.subspan(part.offset.count(), part.size.count());
}

class ManagedLink final : public LinkUnderTest {
 public:
  ManagedLink(um::Device& device, const um::ManagedOptions& options)
      : ledger_{options.near}, space_{device.make_managed_space(options, ledger_)} {
    um::populate_now(*space_, space_->slab(), *device.make_stream("populate"));
  }

  [[nodiscard]] um::Bytes size() const override { return um::Bytes{space_->slab().size()}; }
  [[nodiscard]] um::FarSide* far_side() override { return space_->hints().far_side(); }

 private:
  // Makes the part dirty again: a clean page would not be transferred.
  void start_away(Part part, um::Completion done) override {
    const um::Range range = range_of(space_->slab(), part);
    const um::Use overwrite{.range = range, .access = um::Access::kWrite};
    space_->hints().begin_use({&overwrite, 1});
    space_->hints().end_use({&overwrite, 1});
    space_->hints().prefetch(range, um::MemoryTier::kFar, std::move(done));
  }
  void start_back(Part part, um::Completion done) override {
    space_->hints().prefetch(range_of(space_->slab(), part), um::MemoryTier::kNear,
                             std::move(done));
  }

  um::Ledger ledger_;
  std::unique_ptr<um::ManagedSpace> space_;
};

class CopyLink final : public LinkUnderTest {
 public:
  CopyLink(um::Device& device, const um::CopyOptions& options)
      : space_{device.make_copy_space(options)} {}

  [[nodiscard]] um::Bytes size() const override { return um::Bytes{space_->near().size()}; }
  [[nodiscard]] um::FarSide* far_side() override { return space_->copies().far_side(); }

 private:
  void start_away(Part part, um::Completion done) override {
    space_->copies().offload(range_of(space_->near(), part), part.offset, std::move(done));
  }
  void start_back(Part part, um::Completion done) override {
    space_->copies().prefetch(part.offset, range_of(space_->near(), part), std::move(done));
  }

  std::unique_ptr<um::CopySpace> space_;
};

// Calls `start(completion)`. Returns a future that is ready when the started move has ended.
template <class Start>
std::future<void> started(const Start& start) {
  const auto done = std::make_shared<std::promise<void>>();  // set_value() may outlast the wait
  start([done](std::exception_ptr error) {
    if (error != nullptr) {
      done->set_exception(std::move(error));
    } else {
      done->set_value();
    }
  });
  return done->get_future();
}

template <class... Start>
um::Nanoseconds time_of(const Start&... starts) {
  const auto begin = std::chrono::steady_clock::now();
  std::array<std::future<void>, sizeof...(starts)> moves{started(starts)...};
  for (std::future<void>& move : moves) move.get();
  return std::chrono::steady_clock::now() - begin;
}

}  // namespace

um::Nanoseconds LinkUnderTest::move_away(Part part) {
  return time_of([&](um::Completion done) { start_away(part, std::move(done)); });
}

um::Nanoseconds LinkUnderTest::move_back(Part part) {
  return time_of([&](um::Completion done) { start_back(part, std::move(done)); });
}

um::Nanoseconds LinkUnderTest::exchange(Part away, Part back) {
  return time_of([&](um::Completion done) { start_away(away, std::move(done)); },
                 [&](um::Completion done) { start_back(back, std::move(done)); });
}

std::unique_ptr<LinkUnderTest> make_link_under_test(um::Device& device, MemoryMode mode,
                                                    um::ManagedOptions options, um::Bytes size) {
  options.size = size;
  options.near = size;
  if (mode == MemoryMode::kManaged) return std::make_unique<ManagedLink>(device, options);
  return std::make_unique<CopyLink>(
      device,
      um::CopyOptions{.size = size, .near = size, .far = options.far, .link = options.link});
}

}  // namespace spillway

#include "src/profile/loaded_link.h"

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <utility>

#include "um/ledger.h"

namespace spillway {
namespace {

class ManagedLink final : public LinkUnderTest {
 public:
  ManagedLink(um::Device& device, const um::ManagedOptions& options)
      : ledger_{options.near}, space_{device.make_managed_space(options, ledger_)} {
    // Near memory is there for what a stream is given from now on, not for moves: they would meet.
    const std::unique_ptr<um::Stream> stream = device.make_stream("populate");
    space_->hints().populate(space_->slab());
    stream->synchronize();
  }

 private:
  // Dirty again: a clean page would not be transferred.
  void start_away(um::Completion done) override {
    const um::Use overwrite{.range = space_->slab(), .access = um::Access::kWrite};
    space_->hints().begin_use({&overwrite, 1});
    space_->hints().end_use({&overwrite, 1});
    space_->hints().prefetch(space_->slab(), um::MemoryTier::kFar, std::move(done));
  }
  void start_back(um::Completion done) override {
    space_->hints().prefetch(space_->slab(), um::MemoryTier::kNear, std::move(done));
  }
  [[nodiscard]] um::Bytes size() const override { return um::Bytes{space_->slab().size()}; }

  um::Ledger ledger_;
  std::unique_ptr<um::ManagedSpace> space_;
};

class CopyLink final : public LinkUnderTest {
 public:
  CopyLink(um::Device& device, const um::CopyOptions& options)
      : space_{device.make_copy_space(options)} {}

 private:
  void start_away(um::Completion done) override {
    space_->copies().offload(space_->near(), um::Bytes{}, std::move(done));
  }
  void start_back(um::Completion done) override {
    space_->copies().prefetch(um::Bytes{}, space_->near(), std::move(done));
  }
  [[nodiscard]] um::Bytes size() const override { return um::Bytes{space_->near().size()}; }

  std::unique_ptr<um::CopySpace> space_;
};

}  // namespace

um::Bandwidth LinkUnderTest::Moved::bandwidth() const {
  return um::Bandwidth{static_cast<double>(bytes.count()) / um::seconds(time)};
}

template <class Start>
void LinkUnderTest::move(const Start& start, Moved& moved) {
  const auto done = std::make_shared<std::promise<void>>();  // set_value() may outlast the wait
  const auto begin = std::chrono::steady_clock::now();
  start([done](std::exception_ptr error) {
    if (error != nullptr) {
      done->set_exception(std::move(error));
    } else {
      done->set_value();
    }
  });
  done->get_future().get();
  moved.time += std::chrono::steady_clock::now() - begin;
  moved.bytes += size();
}

void LinkUnderTest::move_away() {
  move([this](um::Completion done) { start_away(std::move(done)); }, away_);
}

void LinkUnderTest::move_back() {
  move([this](um::Completion done) { start_back(std::move(done)); }, back_);
}

void LinkUnderTest::forget() {
  away_ = {};
  back_ = {};
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

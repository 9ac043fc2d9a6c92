#include "um/host/managed/managed_region.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "um/error.h"
#include "um/host/managed/fault_signal.h"
#include "um/host/managed/page.h"
#include "um/host/managed/page_mapper.h"
#include "um/host/managed/page_moves.h"
#include "um/host/managed/residency.h"
#include "um/machine/available_memory.h"
#include "um/threads/engine.h"

namespace spillway::um {
namespace {

PageGeometry geometry_of(const ManagedOptions& options) {
  expects(
      std::has_single_bit(options.page.count()) && options.page >= 4_KiB && options.page <= 2_MiB,
      "a page is a power of two from 4 KiB to 2 MiB");
  expects(options.size > Bytes{} && options.size.count() % options.page.count() == 0 &&
              options.near.count() % options.page.count() == 0,
          "a managed space and its near memory consist of whole pages");
  expects(options.size / options.page < std::numeric_limits<PageIndex>::max(),
          "a managed space has less than 2^32 pages");
  const Bytes near = std::min(options.near, options.size);
  // An instruction may touch two pages: with room for only one it would fault for ever.
  if (near < std::min(2 * options.page, options.size)) {
    throw Error{"near memory of " + to_string(options.near) + " does not hold two pages of " +
                to_string(options.page) + "; give it more, or use smaller pages"};
  }
  expect_available(near, "take " + to_string(near) + " of near memory", "use a smaller budget");
  return {.page = options.page,
          .pages = static_cast<PageIndex>(options.size / options.page),
          .slots = static_cast<SlotIndex>(near / options.page)};
}

/// Checks the sum, since far memory in RAM takes its pages later: each alone may fit, but not both.
void expect_room_for_both(const ManagedOptions& options) {
  const Bytes near = std::min(options.near, options.size);
  const Bytes far = options.far.used.value_or(options.size);
  expect_available(near + far,
                   "take " + to_string(near) + " of near memory and put " + to_string(far) +
                       " of far memory in RAM",
                   "put far memory on disk with --far file:PATH, or use a smaller budget",
                   kBesideTraining);
}

class ManagedRegion final : public ManagedSpace, private Hints, private FaultTarget {
 public:
  ManagedRegion(const ManagedOptions& options, Ledger& ledger, std::unique_ptr<FarStore> far)
      : geometry_{geometry_of(options)},
        mapper_{make_page_mapper(options.paging, geometry_)},
        grid_{mapper_->region(), options.page},
        transfer_{options, *mapper_, std::move(far)},
        residency_{options, geometry_, *mapper_, transfer_, ledger},
        registration_{mapper_->region(), *this},
        in_{"um in"},
        out_{"um out"} {}

  [[nodiscard]] Range slab() override { return grid_.slab(); }
  [[nodiscard]] Hints& hints() override { return *this; }
  [[nodiscard]] Counters counters() const override { return residency_.counters(); }
  [[nodiscard]] Bytes near_bytes(Range range) const override {
    return residency_.near_bytes(range, grid_);
  }
  [[nodiscard]] std::string description() const override;

 private:
  void prefetch(Range range, MemoryTier tier, Completion done) override;
  void populate(Range range) override { residency_.populate(grid_.whole(range)); }
  void discard(Range range) override { residency_.discard(grid_.whole(range)); }
  void advise(Range range, Advice advice) override {
    residency_.advise(grid_.whole(range), advice);
  }
  void begin_use(std::span<const Use> operands) override { residency_.begin_use(operands, grid_); }
  void end_use(std::span<const Use> operands) noexcept override {
    residency_.end_use(operands, grid_);
  }
  void check() override { residency_.check(); }
  [[nodiscard]] FarSide* far_side() override { return &transfer_.far(); }
  [[nodiscard]] bool on_fault(const std::byte* address) noexcept override {
    return residency_.fault(grid_.page_of(address));
  }

  const PageGeometry geometry_;
  const std::unique_ptr<PageMapper> mapper_;
  const PageGrid grid_;
  PageTransfer transfer_;
  Residency residency_;
  const FaultRegistration registration_;
  Engine in_;  // last: the engines finish before other members are destroyed
  Engine out_;
};

std::string ManagedRegion::description() const {
  const Bytes page = geometry_.page;
  const std::string size =
      page < 1_MiB ? std::to_string(page / 1_KiB) + " KiB" : std::to_string(page / 1_MiB) + " MiB";
  return std::string{mapper_->name()} + ", " + size + " pages, far " +
         transfer_.far().description();
}

void ManagedRegion::prefetch(Range range, MemoryTier tier, Completion done) {
  const PageSpan pages = grid_.whole(range);
  if (tier == MemoryTier::kNear) {
    in_.enqueue([this, pages, done = std::move(done)] { done(residency_.fetch(pages)); });
  } else {
    out_.enqueue([this, pages, done = std::move(done)] { done(residency_.offload(pages)); });
  }
}

}  // namespace

std::unique_ptr<ManagedSpace> make_managed_region(const ManagedOptions& options, Ledger& ledger,
                                                  std::unique_ptr<FarStore> far) {
  expects(far != nullptr && far->size() == options.size, "far memory is as large as the space");
  return std::make_unique<ManagedRegion>(options, ledger, std::move(far));
}

std::unique_ptr<ManagedSpace> make_managed_region(const ManagedOptions& options, Ledger& ledger) {
  if (options.far.file.empty()) expect_room_for_both(options);
  return make_managed_region(options, ledger, make_far_store(options.far, options.size));
}

}  // namespace spillway::um

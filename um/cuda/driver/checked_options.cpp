#include "um/cuda/driver/checked_options.h"

#include <string>

#include "um/cuda/driver/far_room.h"
#include "um/error.h"

namespace spillway::um {
namespace {

// The driver moves and keeps memory in units of 2 MiB.
constexpr Bytes kUnit = 2_MiB;

void expect_far_ram(const FarOptions& far) {
  if (!far.file.empty()) throw Error{"a GPU keeps far memory in RAM; leave out --far file"};
}

void expect_own_link(const LinkOptions& link) {
  if (link.bandwidth || link.latency > Nanoseconds{0}) {
    throw Error{"a GPU's link cannot be slowed down; leave out --link-bandwidth and its latency"};
  }
}

}  // namespace

const ManagedOptions& checked(const ManagedOptions& options, const CudaFacts& facts) {
  if (!facts.has_concurrent_managed_access) {
    throw Error{"unified memory cannot be moved by hints on " + facts.name +
                " here (concurrentManagedAccess is 0, as on WSL, Windows and Jetson); use --memory "
                "copy"};
  }
  expect_far_ram(options.far);
  expect_own_link(options.link);
  if (options.paging != Paging::kAuto || options.fault_latency > Nanoseconds{0}) {
    throw Error{"a GPU pages by itself; leave out --paging and the latency of page faults"};
  }
  if (options.page < kUnit || options.page.count() % kUnit.count() != 0) {
    throw Error{"a GPU moves unified memory in units of " + to_string(kUnit) +
                "; pages must be a multiple of that, not " + to_string(options.page)};
  }
  expects(options.size > Bytes{} && options.size.count() % options.page.count() == 0,
          "a managed space consists of whole pages");
  if (options.far.used > Bytes{}) {
    expect_far_room(options.far.used, "put " + to_string(options.far.used) +
                                          " of unified memory, which the plan moves far, in RAM");
  }
  return options;
}

const CopyOptions& checked(const CopyOptions& options) {
  expect_far_ram(options.far);
  expect_own_link(options.link);
  return options;
}

}  // namespace spillway::um

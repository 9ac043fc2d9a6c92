#include "um/host/far/far_ram.h"

#include "um/error.h"
#include "um/host/far/copy_bytes.h"
#include "um/host/far/far_access.h"
#include "um/machine/available_memory.h"
#include "um/machine/mapping.h"

namespace spillway::um {
namespace {

Range map_far_ram(Bytes size) {
  expect_available(size, "put " + to_string(size) + " of far memory in RAM",
                   "put it on disk with --far file:PATH", kBesideTraining);
  return map_memory(size);
}

}  // namespace

FarRam::FarRam(Bytes size) : memory_{map_far_ram(size)} {}

FarRam::~FarRam() { unmap_memory(memory_); }

Range FarRam::addresses(Bytes offset, Bytes size) {
  expects(offset <= this->size() && size <= this->size() - offset, "a range of the far store");
  return memory_.subspan(offset.count(), size.count());
}

void FarRam::read(Bytes offset, std::span<std::byte> to) {
  expect_far_access(size(), offset, to);
  copy_bytes(to, memory_.subspan(offset.count(), to.size()));
}

void FarRam::write(Bytes offset, std::span<const std::byte> from) {
  expect_far_access(size(), offset, from);
  copy_bytes(memory_.subspan(offset.count(), from.size()), from);
}

}  // namespace spillway::um

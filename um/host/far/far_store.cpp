#include "um/host/far/far_store.h"

#include "um/host/far/far_file.h"
#include "um/host/far/far_ram.h"

namespace spillway::um {

std::unique_ptr<FarStore> make_far_store(const FarOptions& options, Bytes size) {
  if (options.file.empty()) return std::make_unique<FarRam>(size);
  return std::make_unique<FarFile>(options.file, size);
}

}  // namespace spillway::um

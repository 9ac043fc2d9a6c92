#include "um/host/far/far_store.h"

#include <utility>

#include "um/host/far/checked_far.h"
#include "um/host/far/far_file.h"
#include "um/host/far/far_ram.h"

namespace spillway::um {

std::unique_ptr<FarStore> make_far_store(const FarOptions& options, Bytes size) {
  if (options.file.empty()) return std::make_unique<FarRam>(size);
  auto file = std::make_unique<FarFile>(options.file, size);
  if (!options.checksums) return file;
  const std::string folder = file->folder().string();
  return std::make_unique<CheckedFar>(std::move(file), folder);
}

}  // namespace spillway::um

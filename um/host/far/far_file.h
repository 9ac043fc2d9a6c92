#pragma once

#include <filesystem>

#include "um/host/far/far_store.h"
#include "um/host/far/unnamed_file.h"

namespace spillway::um {

/// Far memory in a file.
class FarFile final : public FarStore {
 public:
  /// Throws: as UnnamedFile.
  FarFile(const std::filesystem::path& path, Bytes size) : file_{path, size}, size_{size} {}

  void read(Bytes offset, std::span<std::byte> to) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  [[nodiscard]] Bytes size() const override { return size_; }
  [[nodiscard]] std::string description() const override;

 private:
  UnnamedFile file_;
  Bytes size_;
};

}  // namespace spillway::um

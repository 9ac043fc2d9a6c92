#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/io/data/image_folder.h"
#include "src/io/data/mixing.h"

namespace spillway::cli {

/// Flags for reading a folder of images, and for loader threads and mixing of any data set.
struct ImageFlags {
  ImageOptions options;
  MixOptions mixing;
  std::string augment;                          ///< preset name; empty: not given
  std::array<std::optional<float>, 5> changes;  ///< crop area, flip, color jitter, hue, erase
  std::string threads = "auto";

  void add_to(CLI::App& command);
  /// Fills in flags that `command` was not given from a checkpoint. Call it before complete().
  void restore(const CLI::App& command, const ImageOptions& kept);
  /// Sets the options from the flags, in any order.
  /// Throws: CLI::ValidationError when flags of images are given for another data set.
  void complete(const CLI::App& command, const std::string& data);
  /// Number of loader threads; 0: one per processor.
  [[nodiscard]] std::size_t loader_threads() const;

 private:
  void add_augmentation_to(CLI::App& command);
  void add_mixing_to(CLI::App& command);
};

}  // namespace spillway::cli

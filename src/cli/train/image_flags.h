#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "src/cli/flags/cli11.h"
#include "src/io/data/image_folder.h"
#include "src/io/data/mixing.h"

namespace spillway::cli {

/// How a folder of images is read, how many threads read any data set, and how images of any are
/// mixed.
struct ImageFlags {
  ImageOptions options;
  MixOptions mixing;
  std::string augment;                          ///< its name; empty: none was given
  std::array<std::optional<float>, 5> changes;  ///< crop area, flip, color jitter, hue, erase
  std::string threads = "auto";

  void add_to(CLI::App& command);
  /// Takes what `command` was not given from a checkpoint; before complete().
  void restore(const CLI::App& command, const ImageOptions& kept);
  /// Makes the options what the flags say, in whatever order they came.
  /// Throws: CLI::ValidationError when flags of images are given for another data set.
  void complete(const CLI::App& command, const std::string& data);
  /// 0: as many as there are processors.
  [[nodiscard]] std::size_t loader_threads() const;

 private:
  void add_augmentation_to(CLI::App& command);
  void add_mixing_to(CLI::App& command);
};

}  // namespace spillway::cli

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/data/broken_files.h"

namespace spillway {

/// A file that should hold an image.
struct ImageFile {
  std::string path;  ///< below the folder of the data set: "train/cat/1.jpg"
  std::int32_t label = 0;
};

/// The files of a folder of images.
struct ImageFiles {
  std::vector<std::string> classes;  ///< their names, sorted; label i is classes[i]
  std::vector<ImageFile> train;      ///< sorted by path
  std::vector<ImageFile> test;
};

/// Where images to test on come from.
struct ImageSplit {
  /// Part of each class that is to test on, where there is no folder of such; nothing: a tenth.
  std::optional<double> validation;
  std::uint64_t seed = 0;  ///< says which ones these are
};

/// Lists train/CLASS and val/CLASS below `folder`, or CLASS where there is no folder train, with
/// all the .jpg, .jpeg and .png files below each. Hidden files and those of other endings do not
/// count. No file is opened; those that are none, and empty ones, are added to `broken`. Throws:
/// um::Error when a folder is missing, cannot be read, holds fewer than two classes or a class
/// without images, or val holds a class that train has not; or both a folder val and
/// `split.validation` are given.
[[nodiscard]] ImageFiles list_images(const std::filesystem::path& folder, const ImageSplit& split,
                                     BrokenFiles& broken);

/// The .jpg, .jpeg and .png files in `folder` and below, sorted, whatever they show. Hidden ones do
/// not count. Throws: um::Error when it cannot be read, or there is none.
[[nodiscard]] std::vector<std::string> find_images(const std::filesystem::path& folder);

/// The number of classes there are. Throws: as list_images() does of them.
[[nodiscard]] std::size_t count_image_classes(const std::filesystem::path& folder);

}  // namespace spillway

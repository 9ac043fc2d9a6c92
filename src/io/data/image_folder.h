#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nets/shape.h"
#include "src/io/data/dataset.h"
#include "src/io/data/image_files.h"
#include "src/io/images/image_pipeline.h"

namespace spillway {

/// How a folder of images is read.
struct ImageOptions {
  Augmentation augmentation = find_augmentation("standard").value();
  std::optional<float> eval_crop;  ///< nothing: 0.875, or 1 for images below 64x64
  OnBroken on_broken = OnBroken::kStop;
  std::optional<double> validation;  ///< ImageSplit's
  friend bool operator==(const ImageOptions&, const ImageOptions&) = default;
};

/// The task that a folder of images is read for.
struct ImageTask {
  nets::Shape image;        ///< input shape of the network
  std::size_t classes = 0;  ///< of the network
  std::uint64_t seed = 0;   ///< for random choices
  ImageOptions options;
};

/// Opens the images that list_images() lists, ready for the network. Holds only the images in
/// memory that are being read. Throws: as list_images() does; um::Error when the network has too
/// few classes, or channels that images lack.
[[nodiscard]] DatasetPair open_image_folder(const std::filesystem::path& folder,
                                            const ImageTask& task);

/// Opens images by their paths, each as an evaluation sees it. Readable images have the label 0, as
/// their classes are unknown. Others are added to `broken`. Throws: um::Error when the network has
/// channels that images lack.
[[nodiscard]] std::unique_ptr<Dataset> open_image_files(const std::vector<std::string>& paths,
                                                        const ImageTask& task,
                                                        std::shared_ptr<BrokenFiles> broken);

}  // namespace spillway

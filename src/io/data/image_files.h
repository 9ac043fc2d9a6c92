#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway {

/// What happens when a file cannot be read as an image.
enum class OnBroken : std::uint8_t {
  kStop,  ///< an error that names it
  kSkip   ///< it is noted, and passed over
};

/// Files of a data set that cannot be read and are passed over.
///
/// Thread safety: any number of threads may call any of the functions at once.
class BrokenFiles {
 public:
  explicit BrokenFiles(OnBroken rule) : rule_{rule} {}

  [[nodiscard]] OnBroken rule() const { return rule_; }

  /// Notes a file, of which `sentence` says what is wrong, unless it is noted already. Throws:
  /// um::Error with the sentence where the rule is to stop.
  void add(const std::string& sentence);
  /// The sentences that have come since the last call.
  [[nodiscard]] std::vector<std::string> take_new();
  /// All sentences so far, each once.
  [[nodiscard]] std::vector<std::string> all() const;
  /// Throws: um::Error where there are some, with the sentences of the first ones by name, and how
  /// many others there are.
  void expect_none() const;
  /// Files so far.
  [[nodiscard]] std::size_t count() const;

 private:
  OnBroken rule_;
  mutable std::mutex mutex_;
  std::set<std::string> all_;
  std::vector<std::string> new_;
};

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

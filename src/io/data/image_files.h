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

/// How to treat a file that cannot be read as an image.
enum class OnBroken : std::uint8_t {
  kStop,  ///< throw an error that names it
  kSkip   ///< note it and skip it
};

/// Files of a data set that cannot be read and are skipped.
///
/// Thread safety: any number of threads may call any function at once.
class BrokenFiles {
 public:
  explicit BrokenFiles(OnBroken rule) : rule_{rule} {}

  [[nodiscard]] OnBroken rule() const { return rule_; }

  /// Notes a broken file once; `sentence` says what is wrong with it. Throws: um::Error with the
  /// sentence where the rule is kStop.
  void add(const std::string& sentence);
  /// Returns the sentences added since the last call.
  [[nodiscard]] std::vector<std::string> take_new();
  /// Returns all sentences so far, each once.
  [[nodiscard]] std::vector<std::string> all() const;
  /// Throws: um::Error if there are broken files. It quotes the first sentences by name and counts
  /// the rest.
  void expect_none() const;
  /// Number of broken files so far.
  [[nodiscard]] std::size_t count() const;

 private:
  OnBroken rule_;
  mutable std::mutex mutex_;
  std::set<std::string> all_;
  std::vector<std::string> new_;
};

/// A file that should hold an image.
struct ImageFile {
  std::string path;  ///< relative to the data set's folder: "train/cat/1.jpg"
  std::int32_t label = 0;
};

/// The files of a folder of images.
struct ImageFiles {
  std::vector<std::string> classes;  ///< their names, sorted; label i is classes[i]
  std::vector<ImageFile> train;      ///< sorted by path
  std::vector<ImageFile> test;
};

/// How test images are chosen.
struct ImageSplit {
  /// Fraction of each class to test on, without a folder val; nothing: a tenth.
  std::optional<double> validation;
  std::uint64_t seed = 0;  ///< chooses the images
};

/// Lists train/CLASS and val/CLASS below `folder`, or CLASS without a folder train. Includes all
/// .jpg, .jpeg and .png files below each class, except hidden ones. Opens no file. Entries that are
/// not files, and empty files, are added to `broken`.
/// Throws: um::Error when a folder is missing, cannot be read, has fewer than two classes or a
/// class without images; when val has a class that train lacks; or when there are both a folder val
/// and `split.validation`.
[[nodiscard]] ImageFiles list_images(const std::filesystem::path& folder, const ImageSplit& split,
                                     BrokenFiles& broken);

/// Returns the .jpg, .jpeg and .png files in `folder` and below, sorted, whatever they show. Skips
/// hidden files. Throws: um::Error when the folder cannot be read or has no such file.
[[nodiscard]] std::vector<std::string> find_images(const std::filesystem::path& folder);

/// Number of classes in `folder`. Throws: as list_images() does for classes.
[[nodiscard]] std::size_t count_image_classes(const std::filesystem::path& folder);

}  // namespace spillway

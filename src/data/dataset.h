#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "nets/shape.h"
#include "src/data/broken_files.h"
#include "src/data/images/byte_images.h"

namespace spillway {

/// Labelled images that can be read in any order. Of a text, an image is a window of tokens.
///
/// Thread safety: any number of threads may call any of the functions at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// For the user: "MNIST-like files in /data/mnist".
  [[nodiscard]] virtual std::string name() const = 0;
  /// The shape of every image: nets::tokens() of a text.
  [[nodiscard]] virtual nets::Shape image() const = 0;
  /// Labels are less than this.
  [[nodiscard]] virtual std::size_t classes() const = 0;
  /// Number of images, at least 1.
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Writes image `index` to `image`, (C, H, W), or the numbers of the tokens. Stored values of
  /// images are between 0 and 1; a data set from open_dataset() gives them with mean 0 and standard
  /// deviation 1, more or less.
  /// Requires: index < size(); `image` has image().elements() numbers.
  /// Throws: um::Error when the image cannot be read.
  virtual void read(std::size_t index, std::span<float> image) const = 0;
  /// What the whole image shows. Requires: index < size().
  [[nodiscard]] virtual std::int32_t label(std::size_t index) const = 0;
  /// Whether each pixel, or token, has a label, or each image one.
  [[nodiscard]] virtual bool labels_pixels() const { return false; }
  /// Writes the labels of image `index`: label(), or with labels_pixels() one for each pixel, row
  /// by row, or token, negative where it does not count. Requires: as many numbers as that.
  virtual void labels(std::size_t index, std::span<std::int32_t> labels) const {
    labels[0] = label(index);
  }
  /// Writes image `index` and its labels as `epoch` shows them: changed in a way that is drawn for
  /// both. This one does read() and labels(). Requires and throws: as these do.
  virtual void show(std::size_t index, std::uint64_t /*epoch*/, std::span<float> image,
                    std::span<std::int32_t> labels) const {
    read(index, image);
    this->labels(index, labels);
  }
  /// Adds to `found` the file of image `index` where its beginning tells that it is broken: sooner
  /// than reading would, and without most of it. This one looks at nothing. Throws: um::Error when
  /// not the file is at fault but a disk or a network.
  virtual void look(std::size_t /*index*/, BrokenFiles& /*found*/) const {}
  /// The same images as bytes, with one label each; null where no bytes stand for their numbers.
  [[nodiscard]] virtual const ByteImages* as_bytes() const { return nullptr; }
  /// SHA-256 of what the images and labels are made of, wherever they lie: of the bytes of their
  /// files, or of what they are drawn from. This one reads every image. Throws: um::Error.
  [[nodiscard]] virtual std::string content_sha256() const;
};

/// Labels of an image.
[[nodiscard]] inline std::size_t labels_each(const Dataset& dataset) {
  const nets::Shape image = dataset.image();
  return dataset.labels_pixels() ? image.height * image.width : 1;
}

/// The images to learn from and those to test on.
struct DatasetPair {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
  std::vector<std::string> class_names = {};  ///< by label; empty where classes have no names
  /// Of both, which add to it as they read; null where nothing is passed over. Shared, as whoever
  /// reads in the background adds to what whoever trains reports.
  std::shared_ptr<BrokenFiles> broken = {};
};

/// How far looking at many files is, and whether it is to end.
struct LookOptions {
  /// Called by the thread that asked, now and then, with the part that has been looked at; not at
  /// all where it takes less than a moment. May be empty.
  std::function<void(double fraction)> on_progress = {};
  std::stop_token stop = {};  ///< requested: what has not been looked at is passed over
};

/// Calls `look` with each number below `count`, in threads of its own. Throws: what `look` throws
/// first, when all threads have ended.
void look_at_each(std::size_t count, const LookOptions& options,
                  const std::function<void(std::size_t)>& look);

/// Which of the data sets of a DatasetPair are going to be read.
struct LookedAt {
  bool train = true;
  bool test = true;
};

/// Adds to `found` the broken ones of these files (Dataset::look()).
void look_at_files(const DatasetPair& data, const LookedAt& sets, const LookOptions& options,
                   BrokenFiles& found);

/// Looks at the files of `data` before anything is read of them (Dataset::look()), where a broken
/// one would end the reading. Throws: um::Error that names all broken ones, as
/// BrokenFiles::expect_none() does.
void expect_whole_files(const DatasetPair& data, const LookedAt& sets, const LookOptions& options);

/// SHA-256 that tells a pair from one with other images or labels. Throws: um::Error when a file
/// cannot be read.
[[nodiscard]] std::string content_sha256(const DatasetPair& data);

}  // namespace spillway

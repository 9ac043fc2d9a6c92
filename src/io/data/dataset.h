#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "nets/network.h"
#include "nets/shape.h"
#include "src/io/data/image_files.h"
#include "src/io/images/image_pipeline.h"

namespace spillway {

/// Labelled images that can be read in any order. An "image" of a text is a window of tokens.
///
/// Thread safety: any number of threads may call any function at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Name for the user, such as "MNIST-like files in /data/mnist".
  [[nodiscard]] virtual std::string name() const = 0;
  /// The shape of every image; nets::tokens() for a text.
  [[nodiscard]] virtual nets::Shape image() const = 0;
  /// Number of classes; labels are less than this.
  [[nodiscard]] virtual std::size_t classes() const = 0;
  /// Number of images, at least 1.
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Writes image `index` to `image`, (C, H, W), or the numbers of its tokens. Stored images have
  /// values between 0 and 1. Data sets from open_dataset() have mean 0 and standard deviation 1,
  /// approximately.
  /// Requires: index < size(); `image` has image().elements() numbers.
  /// Throws: um::Error when the image cannot be read.
  virtual void read(std::size_t index, std::span<float> image) const = 0;
  /// The label of the whole image. Requires: index < size().
  [[nodiscard]] virtual std::int32_t label(std::size_t index) const = 0;
  /// Returns whether each pixel or token has a label, rather than each image.
  [[nodiscard]] virtual bool labels_pixels() const { return false; }
  /// Writes the labels of image `index`: label(), or with labels_pixels() one per pixel (row by
  /// row) or token. Negative labels do not count. Requires: `labels` has room for exactly these.
  virtual void labels(std::size_t index, std::span<std::int32_t> labels) const {
    labels[0] = label(index);
  }
  /// Writes image `index` and its labels as `epoch` shows them: augmented at random, both alike.
  /// The default does read() and labels(). Requires and throws: as these do.
  virtual void show(std::size_t index, std::uint64_t /*epoch*/, std::span<float> image,
                    std::span<std::int32_t> labels) const {
    read(index, image);
    this->labels(index, labels);
  }
  /// Adds the file of image `index` to `found` if its beginning shows that it is broken. This is
  /// faster than reading the whole file. The default does nothing. Throws: um::Error when a disk or
  /// a network is at fault, not the file.
  virtual void look(std::size_t /*index*/, BrokenFiles& /*found*/) const {}
  /// The same images as bytes, with one label each; null where bytes cannot represent them.
  [[nodiscard]] virtual const ByteImages* as_bytes() const { return nullptr; }
  /// SHA-256 of the content of images and labels, independent of their location. It covers the
  /// bytes of their files, or the parameters that they are drawn from. The default reads every
  /// image. Throws: um::Error.
  [[nodiscard]] virtual std::string content_sha256() const;
};

/// Number of labels per image.
[[nodiscard]] inline std::size_t labels_each(const Dataset& dataset) {
  const nets::Shape image = dataset.image();
  return dataset.labels_pixels() ? image.height * image.width : 1;
}

/// Images for training and for testing.
struct DatasetPair {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
  std::vector<std::string> class_names = {};  ///< by label; empty where classes have no names
  /// Broken files of both data sets; null where broken files are not skipped. Shared because loader
  /// threads add files while the training thread reports them.
  std::shared_ptr<BrokenFiles> broken = {};
};

/// Progress and cancellation of a look at many files.
struct LookOptions {
  /// Called now and then, on the calling thread, with the part that is done. Not called if all
  /// takes less than a moment. May be empty.
  std::function<void(double fraction)> on_progress = {};
  std::stop_token stop = {};  ///< when requested, the remaining files are skipped
};

/// Calls `look` with each number below `count`, in threads of its own. Throws: the first exception
/// of `look`, after all threads have ended.
void look_at_each(std::size_t count, const LookOptions& options,
                  const std::function<void(std::size_t)>& look);

/// The data sets of a DatasetPair that will be read.
struct LookedAt {
  bool train = true;
  bool test = true;
};

/// Adds the broken files of `sets` to `found` (Dataset::look()).
void look_at_files(const DatasetPair& data, const LookedAt& sets, const LookOptions& options,
                   BrokenFiles& found);

/// Looks at the files of `data` before any of them is read (Dataset::look()). Does so where a
/// broken file would end the reading. Throws: um::Error that names all broken ones, as
/// BrokenFiles::expect_none() does.
void expect_whole_files(const DatasetPair& data, const LookedAt& sets, const LookOptions& options);

/// SHA-256 that identifies the images and labels of a pair. Throws: um::Error when a file cannot be
/// read.
[[nodiscard]] std::string content_sha256(const DatasetPair& data);

/// The token that a network of texts learns to predict.
enum class Objective : std::uint8_t {
  kNextToken,    ///< the token that follows each token, from it and those before it
  kMaskedTokens  ///< hidden tokens, from all others (Devlin et al., 2018)
};

/// Returns kMaskedTokens if the network has an attention that is not causal; otherwise kNextToken.
[[nodiscard]] Objective objective_of(const nets::Network& network);

/// Returns the first `count` samples of `whole`. Throws: um::Error when there are fewer.
[[nodiscard]] std::unique_ptr<Dataset> first_samples(std::unique_ptr<Dataset> whole,
                                                     std::size_t count);

}  // namespace spillway

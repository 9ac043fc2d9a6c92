#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "src/io/data/open_dataset.h"
#include "src/io/file_digest.h"
#include "src/ops/narrow_floats.h"
#include "um/error.h"
#include "um/files/input_file.h"

namespace spillway {
namespace {

constexpr std::size_t kClasses = 10;
constexpr nets::Shape kImage{.channels = 3, .height = 32, .width = 32};
constexpr std::size_t kRecord = 1 + kImage.elements();  // label, then (C, H, W) bytes

um::InputFile open(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path path = folder / name;
  std::error_code error;  // InputFile reports why it cannot look at a path
  if (!std::filesystem::exists(path, error) && !error) {
    throw um::Error{"there is no file " + path.string() +
                    "; put data_batch_1.bin to data_batch_5.bin and test_batch.bin of CIFAR-10's "
                    "binary version into " +
                    folder.string()};
  }
  um::InputFile file{path};
  if (file.size() == 0 || file.size() % kRecord != 0) {
    throw um::Error{path.string() + " has " + std::to_string(file.size()) +
                    " bytes, which is no multiple of the " + std::to_string(kRecord) +
                    " of an image; copy or download it again"};
  }
  return file;
}

std::vector<std::uint8_t> read_labels(const um::InputFile& file) {
  std::vector<std::uint8_t> labels(file.size() / kRecord);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    file.read(i * kRecord, std::as_writable_bytes(std::span{&labels[i], 1}));
    if (labels[i] >= kClasses) {
      throw um::Error{"image " + std::to_string(i) + " of " + file.path().string() +
                      " has the label " + std::to_string(labels[i]) +
                      ", but CIFAR-10's go from 0 to 9; copy or download the file again"};
    }
  }
  return labels;
}

class Cifar10 final : public Dataset, private StoredByteImages {
 public:
  Cifar10(const std::filesystem::path& folder, const std::vector<std::string>& names,
          std::size_t classes)
      : folder_{folder}, classes_{classes} {
    for (const std::string& name : names) {
      files_.push_back(open(folder, name));
      const std::vector<std::uint8_t> labels = read_labels(files_.back());
      labels_.insert(labels_.end(), labels.begin(), labels.end());
      ends_.push_back(labels_.size());
    }
  }

  [[nodiscard]] std::string name() const override { return "CIFAR-10 in " + folder_.string(); }
  [[nodiscard]] nets::Shape image() const override { return kImage; }
  [[nodiscard]] std::size_t classes() const override { return classes_; }
  [[nodiscard]] std::size_t size() const override { return labels_.size(); }
  [[nodiscard]] std::int32_t label(std::size_t index) const override { return labels_.at(index); }

  void read(std::size_t index, std::span<float> image) const override {
    um::expects(index < size() && image.size() == kImage.elements(), "an image and room for it");
    std::vector<std::uint8_t> bytes(image.size());
    read_bytes(index, bytes);
    look_up(bytes, byte_numbers_, image);
  }

  [[nodiscard]] const ByteImages* as_bytes() const override { return this; }
  [[nodiscard]] std::string content_sha256() const override {
    std::string digests = "CIFAR-10";
    for (const um::InputFile& file : files_) digests += ' ' + sha256_of(file);
    return sha256_of(digests);
  }

 private:
  [[nodiscard]] std::span<const float> byte_numbers() const override { return byte_numbers_; }
  void read_bytes(std::size_t index, std::span<std::uint8_t> bytes) const override {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), index);
    const auto file = static_cast<std::size_t>(end - ends_.begin());
    const std::size_t place = index - (file == 0 ? 0 : ends_[file - 1]);
    files_[file].read(place * kRecord + 1, std::as_writable_bytes(bytes));
  }

  std::filesystem::path folder_;
  std::size_t classes_;
  std::vector<um::InputFile> files_;
  std::vector<std::size_t> ends_;  // images in this file and those before it
  std::vector<std::uint8_t> labels_;
  std::vector<float> byte_numbers_ = unit_numbers(kImage.channels);
};

}  // namespace

DatasetPair open_cifar10(const std::filesystem::path& folder, std::size_t classes) {
  if (classes < kClasses) {
    throw um::Error{"CIFAR-10 has 10 classes, but the network has " + std::to_string(classes) +
                    "; use --classes 10 or more"};
  }
  const std::vector<std::string> train{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                       "data_batch_4.bin", "data_batch_5.bin"};
  return {.train = std::make_unique<Cifar10>(folder, train, classes),
          .test = std::make_unique<Cifar10>(folder, std::vector<std::string>{"test_batch.bin"},
                                            classes)};
}

}  // namespace spillway

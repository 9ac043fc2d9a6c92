#include "src/data/idx.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "src/data/unpacked_file.h"
#include "src/files/file_digest.h"
#include "src/numbers/byte_numbers.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr std::uint32_t kImagesMagic = 0x00000803;  // unsigned bytes in three dimensions
constexpr std::uint32_t kLabelsMagic = 0x00000801;  // and in one

std::uint32_t read_big_endian(const UnpackedFile& file, std::uint64_t offset) {
  std::array<std::byte, 4> bytes{};
  file.read(offset, bytes);
  std::uint32_t value = 0;
  for (const std::byte byte : bytes) value = value << 8 | std::to_integer<std::uint32_t>(byte);
  return value;
}

std::string hexadecimal(std::uint32_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << std::setfill('0') << std::setw(8) << value;
  return text.str();
}

// The file of this name, or the one that gzip made of it.
UnpackedFile open_part(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;  // UnpackedFile says why a path cannot be looked at
  if (!std::filesystem::exists(folder / name, error) && !error) {
    if (std::filesystem::exists(folder / (name + ".gz"), error)) {
      return UnpackedFile{folder / (name + ".gz")};
    }
    throw um::Error{"there is no file " + (folder / name).string() +
                    "; put train-images-idx3-ubyte, train-labels-idx1-ubyte, "
                    "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, or what gzip makes of "
                    "these, into " +
                    folder.string()};
  }
  return UnpackedFile{folder / name};
}

/// A header: magic number and dimensions, all big-endian.
std::vector<std::size_t> read_dimensions(const UnpackedFile& file, std::uint32_t magic) {
  const std::size_t count = magic & 0xFF;
  const std::uint64_t header = 4 + 4 * count;
  const std::string name = file.path().string();
  if (file.size() < header) {
    throw um::Error{name + " has " + std::to_string(file.size()) +
                    " bytes, but its header alone needs " + std::to_string(header) +
                    "; copy or download it again"};
  }
  const std::uint32_t found = read_big_endian(file, 0);
  if (found != magic) {
    throw um::Error{name + " starts with " + hexadecimal(found) + ", not with " +
                    hexadecimal(magic) + "; it is no IDX file of this kind"};
  }
  std::vector<std::size_t> dimensions;
  std::uint64_t bytes = 1;
  for (std::size_t i = 0; i < count; ++i) {
    dimensions.push_back(read_big_endian(file, 4 + 4 * i));
    if (dimensions.back() == 0) throw um::Error{name + " is empty: one of its dimensions is 0"};
    if (bytes > std::numeric_limits<std::uint64_t>::max() / dimensions.back()) {
      throw um::Error{name + " has dimensions that no file can have; copy or download it again"};
    }
    bytes *= dimensions.back();
  }
  if (file.size() - header != bytes) {
    throw um::Error{name + " has " + std::to_string(file.size() - header) +
                    " bytes after its header, which promises " + std::to_string(bytes) +
                    "; copy or download it again"};
  }
  return dimensions;
}

std::vector<std::uint8_t> read_labels(const UnpackedFile& file, std::size_t images,
                                      const UnpackedFile& image_file) {
  const std::size_t count = read_dimensions(file, kLabelsMagic)[0];
  if (count != images) {
    throw um::Error{file.path().string() + " holds " + std::to_string(count) + " labels, but " +
                    image_file.path().string() + " holds " + std::to_string(images) +
                    " images; take both from the same data set"};
  }
  std::vector<std::uint8_t> labels(count);
  file.read(8, std::as_writable_bytes(std::span{labels}));
  return labels;
}

class IdxDataset final : public Dataset, private StoredByteImages {
 public:
  IdxDataset(const std::filesystem::path& folder, const std::string& split, std::size_t classes)
      : images_{open_part(folder, split + "-images-idx3-ubyte")}, classes_{classes} {
    const std::vector<std::size_t> dimensions = read_dimensions(images_, kImagesMagic);
    image_ = {.channels = 1, .height = dimensions[1], .width = dimensions[2]};
    const UnpackedFile label_file = open_part(folder, split + "-labels-idx1-ubyte");
    labels_ = read_labels(label_file, dimensions[0], images_);
    const std::size_t min = std::size_t{*std::max_element(labels_.begin(), labels_.end())} + 1;
    if (min > classes) {
      throw um::Error{"the labels in " + label_file.path().string() + " go up to " +
                      std::to_string(min - 1) + ", but the network has " + std::to_string(classes) +
                      " classes; use --classes " + std::to_string(min) + " or more"};
    }
  }

  [[nodiscard]] std::string name() const override {
    return "IDX files in " + images_.path().parent_path().string();
  }
  [[nodiscard]] nets::Shape image() const override { return image_; }
  [[nodiscard]] std::size_t classes() const override { return classes_; }
  [[nodiscard]] std::size_t size() const override { return labels_.size(); }
  [[nodiscard]] std::int32_t label(std::size_t index) const override { return labels_.at(index); }

  void read(std::size_t index, std::span<float> image) const override {
    um::expects(index < size() && image.size() == image_.elements(), "an image and room for it");
    std::vector<std::uint8_t> bytes(image.size());
    read_bytes(index, bytes);
    look_up(bytes, byte_numbers_, image);
  }

  [[nodiscard]] const ByteImages* as_bytes() const override { return this; }
  [[nodiscard]] std::string content_sha256() const override {
    return sha256_of("IDX " + images_.sha256() + ' ' +
                     sha256_of(std::as_bytes(std::span{labels_})));
  }

 private:
  static constexpr std::uint64_t kHeader = 16;

  [[nodiscard]] std::span<const float> byte_numbers() const override { return byte_numbers_; }
  void read_bytes(std::size_t index, std::span<std::uint8_t> bytes) const override {
    images_.read(kHeader + std::uint64_t{index} * bytes.size(), std::as_writable_bytes(bytes));
  }

  UnpackedFile images_;
  std::size_t classes_;
  nets::Shape image_;
  std::vector<std::uint8_t> labels_;
  std::vector<float> byte_numbers_ = unit_numbers(1);
};

}  // namespace

DatasetPair open_idx(const std::filesystem::path& folder, std::size_t classes) {
  return {.train = std::make_unique<IdxDataset>(folder, "train", classes),
          .test = std::make_unique<IdxDataset>(folder, "t10k", classes)};
}

}  // namespace spillway

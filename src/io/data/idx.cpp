#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iomanip>
#include <limits>
#include <memory>
#include <span>
#include <sstream>
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

/// A file, unpacked into memory if its content says that gzip packed it.
///
/// Thread safety: any number of threads may read at once.
class UnpackedFile {
 public:
  /// Throws: um::Error when the file cannot be read, or is packed and damaged or larger than 4 GiB.
  explicit UnpackedFile(std::filesystem::path path);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] std::uint64_t size() const { return is_packed_ ? content_.size() : file_.size(); }
  /// Reads as um::InputFile does.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// SHA-256 of the file as it is stored, packed or not. Throws: um::Error.
  [[nodiscard]] std::string sha256() const;

 private:
  um::InputFile file_;
  bool is_packed_ = false;
  std::vector<std::byte> content_;  // empty where the file is not packed
};

constexpr std::array kGzipMagic{std::byte{0x1F}, std::byte{0x8B}};
constexpr int kGzipWindow = 15 + 16;  // the largest window; 16 selects gzip's header
constexpr std::size_t kUnpackedPiece = std::size_t{1} << 20U;
constexpr std::uint64_t kMostUnpacked = std::uint64_t{1} << 32U;

bool begins_as_gzip(const um::InputFile& file) {
  if (file.size() < kGzipMagic.size()) return false;
  std::array<std::byte, kGzipMagic.size()> begin{};
  file.read(0, begin);
  return begin == kGzipMagic;
}

// Unpacks a gzip file, all of its members.
class Inflation {
 public:
  explicit Inflation(const um::InputFile& file) : file_{file} {
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) {
      throw um::Error{"there is no memory to unpack " + file.path().string()};
    }
  }
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;
  ~Inflation() { inflateEnd(&stream_); }

  [[nodiscard]] std::vector<std::byte> content() {
    std::vector<std::byte> content;
    for (std::uint64_t offset = 0; offset < file_.size(); offset += packed_.size()) {
      packed_.resize(std::min<std::uint64_t>(kUnpackedPiece, file_.size() - offset));
      file_.read(offset, packed_);
      unpack_piece(content);
    }
    if (!is_at_end_) throw um::Error{file_.path().string() + " is cut short; copy it again"};
    return content;
  }

 private:
  void unpack_piece(std::vector<std::byte>& content) {
    stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    stream_.avail_in = static_cast<uInt>(packed_.size());
    do {
      if (is_at_end_ && stream_.avail_in > 0) inflateReset(&stream_);
      stream_.next_out = reinterpret_cast<Bytef*>(unpacked_.data());
      stream_.avail_out = static_cast<uInt>(unpacked_.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        throw um::Error{file_.path().string() + " is damaged: gzip cannot unpack it"};
      }
      is_at_end_ = result == Z_STREAM_END;
      content.insert(content.end(), unpacked_.begin(),
                     unpacked_.end() - static_cast<std::ptrdiff_t>(stream_.avail_out));
      if (content.size() > kMostUnpacked) {
        throw um::Error{file_.path().string() + " is larger than 4 GiB when it is unpacked; " +
                        "unpack it with gunzip"};
      }
    } while (stream_.avail_in > 0 || stream_.avail_out == 0);
  }

  const um::InputFile& file_;
  z_stream stream_{};
  bool is_at_end_ = false;
  std::vector<std::byte> packed_;
  std::vector<std::byte> unpacked_ = std::vector<std::byte>(kUnpackedPiece);
};

UnpackedFile::UnpackedFile(std::filesystem::path path)
    : file_{std::move(path)}, is_packed_{begins_as_gzip(file_)} {
  if (is_packed_) content_ = Inflation{file_}.content();
}

void UnpackedFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  if (!is_packed_) return file_.read(offset, bytes);
  um::expects(offset <= content_.size() && bytes.size() <= content_.size() - offset,
              "bytes that a packed file has");
  std::ranges::copy(std::span{content_}.subspan(offset, bytes.size()), bytes.begin());
}

std::string UnpackedFile::sha256() const {
  return is_packed_ ? sha256_of(content_) : sha256_of(file_);
}

constexpr std::uint32_t kImagesMagic = 0x00000803;  // unsigned bytes in three dimensions
constexpr std::uint32_t kLabelsMagic = 0x00000801;  // unsigned bytes in one dimension

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

// Opens the file `name` or, where there is none, its gzip version.
UnpackedFile open_part(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;  // UnpackedFile reports why it cannot look at a path
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

/// Reads a header: magic number and dimensions, all big-endian. Returns the dimensions.
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

#include "src/data/unpacked_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "src/files/file_digest.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr std::array kGzipMagic{std::byte{0x1F}, std::byte{0x8B}};
constexpr int kGzipWindow = 15 + 16;  // the largest one; 16 stands for gzip's header
constexpr std::size_t kPiece = std::size_t{1} << 20U;
constexpr std::uint64_t kMostUnpacked = std::uint64_t{1} << 32U;

bool begins_as_gzip(const um::InputFile& file) {
  if (file.size() < kGzipMagic.size()) return false;
  std::array<std::byte, kGzipMagic.size()> begin{};
  file.read(0, begin);
  return begin == kGzipMagic;
}

// What a file of gzip holds; a second member behind the first one counts too.
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
      packed_.resize(std::min<std::uint64_t>(kPiece, file_.size() - offset));
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
  std::vector<std::byte> unpacked_ = std::vector<std::byte>(kPiece);
};

}  // namespace

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

}  // namespace spillway

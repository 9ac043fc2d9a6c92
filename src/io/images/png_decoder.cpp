#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "src/io/images/image_decoder.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr png_uint_32 kLongestOfPng = 1U << 26U;     // large, as expect_decodable() reports sizes
constexpr png_alloc_size_t kLongestChunk = 1 << 23;  // of text and other metadata
constexpr std::uint8_t kOpaque = 255;

class PngDecoder final : public ImageDecoder {
 public:
  explicit PngDecoder(std::span<const std::byte> file);
  ~PngDecoder() override { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  [[nodiscard]] nets::Extent extent() const override { return extent_; }
  [[nodiscard]] unsigned shrink(double /*least*/) override { return 8; }
  [[nodiscard]] nets::Extent scaled_extent() const override { return extent_; }
  void decode(const PixelRange& range,
              const std::function<void(const std::uint8_t*)>& on_row) override;

 private:
  static void read_bytes(png_structp png, png_bytep bytes, png_size_t count);
  [[noreturn]] static void on_error(png_structp png, png_const_charp message);
  static void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}

  template <typename Call>
  void guarded(Call call);
  void open();
  void choose_format();
  void read_row(std::uint8_t* row);
  void decode_interlaced(const PixelRange& range,
                         const std::function<void(const std::uint8_t*)>& on_row);

  std::span<const std::byte> file_;  // the part that is still unread
  bool is_cut_short_ = false;
  std::array<char, 200> message_{};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  nets::Extent extent_;
};

void PngDecoder::read_bytes(png_structp png, png_bytep bytes, png_size_t count) {
  auto& decoder = *static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (count > decoder.file_.size()) {
    decoder.is_cut_short_ = true;
    png_error(png, "cut short");
  }
  std::memcpy(bytes, decoder.file_.data(), count);
  decoder.file_ = decoder.file_.subspan(count);
}

void PngDecoder::on_error(png_structp png, png_const_charp message) {
  auto& decoder = *static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::strncpy(decoder.message_.data(), message, decoder.message_.size() - 1);
  png_longjmp(png, 1);
}

// Runs `call`, which may only call libpng and own nothing: errors jump out of it.
template <typename Call>
[[gnu::noinline]] void PngDecoder::guarded(Call call) {
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp,cert-err52-cpp): libpng has no other way out
  if (setjmp(png_jmpbuf(png_)) != 0) {
    if (is_cut_short_) throw um::Error{"is cut short"};
    throw um::Error{std::string{"is damaged: "} + message_.data()};
  }
  call();
}

PngDecoder::PngDecoder(std::span<const std::byte> file) : file_{file} {
  png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
  if (png_ == nullptr) throw um::Error{"cannot be decoded: libpng has no memory for it"};
  try {
    open();
    expect_decodable(extent_);
    choose_format();
  } catch (const um::Error&) {
    png_destroy_read_struct(&png_, &info_, nullptr);
    throw;
  }
}

void PngDecoder::open() {
  guarded([&] {
    info_ = png_create_info_struct(png_);
    if (info_ == nullptr) png_error(png_, "out of memory");
    png_set_read_fn(png_, this, read_bytes);
    png_set_user_limits(png_, kLongestOfPng, kLongestOfPng);
    png_set_chunk_malloc_max(png_, kLongestChunk);
    png_read_info(png_, info_);
    extent_ = {.height = png_get_image_height(png_, info_),
               .width = png_get_image_width(png_, info_)};
  });
}

// Chooses four bytes a pixel; the last one is unused.
void PngDecoder::choose_format() {
  guarded([&] {
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_filler(png_, kOpaque, PNG_FILLER_AFTER);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != extent_.width * kPixelBytes) {
      png_error(png_, "rows of another length");
    }
  });
}

void PngDecoder::decode(const PixelRange& range,
                        const std::function<void(const std::uint8_t*)>& on_row) {
  if (png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE) {
    return decode_interlaced(range, on_row);
  }
  std::vector<std::uint8_t> row(extent_.width * kPixelBytes);
  for (std::size_t y = 0; y < range.bottom; ++y) {
    read_row(row.data());
    if (y >= range.top) on_row(row.data() + range.left * kPixelBytes);
  }
}

void PngDecoder::read_row(std::uint8_t* row) {
  guarded([&] { png_read_row(png_, row, nullptr); });
}

// Decodes all rows first, as each pass fills in some pixels of every row.
void PngDecoder::decode_interlaced(const PixelRange& range,
                                   const std::function<void(const std::uint8_t*)>& on_row) {
  const std::size_t stride = extent_.width * kPixelBytes;
  std::vector<std::uint8_t> pixels(extent_.height * stride);
  for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; ++pass) {
    for (std::size_t y = 0; y < extent_.height; ++y) read_row(&pixels[y * stride]);
  }
  for (std::size_t y = range.top; y < range.bottom; ++y) {
    on_row(&pixels[y * stride + range.left * kPixelBytes]);
  }
}

}  // namespace

std::unique_ptr<ImageDecoder> open_png(std::span<const std::byte> file) {
  return std::make_unique<PngDecoder>(file);
}

}  // namespace spillway

#include "src/io/images/image_decoder.h"

// jpeglib.h needs the headers before it, and jerror.h needs jpeglib.h:
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <array>
#include <csetjmp>
#include <string>
#include <vector>

#include "um/error.h"

namespace spillway {
namespace {

constexpr long kMostMemory = 1L << 29;  // for the coefficients of a progressive image
constexpr int kMostScans = 500;         // each scan covers the whole image
constexpr unsigned kWholeInEighths = 8;

// Callbacks of libjpeg: an error jumps back to the current call.
struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg passes a pointer to it
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> message;
};

[[noreturn]] void on_jpeg_error(j_common_ptr info) {
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message.data());
  std::longjmp(errors->jump, 1);
}

// Treats a warning about lost pixels as an error. Other warnings, such as meaningless bytes, are
// ignored: viewers show these images, too.
void on_jpeg_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
      on_jpeg_error(info);
    default:
      ++info->err->num_warnings;
  }
}

void on_jpeg_progress(j_common_ptr info) {
  const auto* const decompress = reinterpret_cast<jpeg_decompress_struct*>(info);
  if (decompress->input_scan_number <= kMostScans) return;
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->manager.msg_code = JERR_NOTIMPL;
  std::snprintf(errors->message.data(), errors->message.size(), "more than %d scans", kMostScans);
  std::longjmp(errors->jump, 1);
}

// Converts a row from CMYK to RGB in place: the light that remains of white paper.
void inks_to_colours(std::uint8_t* row, std::size_t pixels, bool is_inverted) {
  for (std::size_t i = 0; i < pixels; ++i, row += kPixelBytes) {
    const auto light = [&](std::size_t c) { return is_inverted ? row[c] : 255U - row[c]; };
    const unsigned black = light(3);
    for (std::size_t c = 0; c < 3; ++c) {
      row[c] = static_cast<std::uint8_t>((light(c) * black + 127U) / 255U);
    }
  }
}

class JpegDecoder final : public ImageDecoder {
 public:
  explicit JpegDecoder(std::span<const std::byte> file);
  ~JpegDecoder() override { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  [[nodiscard]] nets::Extent extent() const override {
    return {.height = info_.image_height, .width = info_.image_width};
  }
  [[nodiscard]] Orientation orientation() const override { return orientation_; }
  [[nodiscard]] unsigned shrink(double least) override;
  [[nodiscard]] nets::Extent scaled_extent() const override {
    return {.height = info_.output_height, .width = info_.output_width};
  }
  void decode(const PixelRange& range,
              const std::function<void(const std::uint8_t*)>& on_row) override;

 private:
  template <typename Call>
  void guarded(Call call);
  void choose_colours();
  void read_row(std::uint8_t* row);
  [[nodiscard]] bool is_of_inks() const { return info_.out_color_space == JCS_CMYK; }

  jpeg_decompress_struct info_{};
  Orientation orientation_;
  JpegErrors errors_{};
  jpeg_progress_mgr progress_{};
};

// Runs `call`, which may only call libjpeg and own nothing: errors jump out of it.
template <typename Call>
[[gnu::noinline]] void JpegDecoder::guarded(Call call) {
  // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp,cert-err52-cpp): libjpeg has no other way out
  if (setjmp(errors_.jump) != 0) {
    if (info_.err->msg_code == JWRN_JPEG_EOF) throw um::Error{"is cut short"};
    if (info_.err->msg_code == JERR_NO_BACKING_STORE) {
      throw um::Error{"is a progressive JPEG of more than " + std::to_string(kMostMemory >> 20) +
                      " MiB of coefficients; save it as a baseline JPEG"};
    }
    throw um::Error{std::string{"is damaged: "} + errors_.message.data()};
  }
  call();
}

JpegDecoder::JpegDecoder(std::span<const std::byte> file) : orientation_{exif_orientation(file)} {
  info_.err = jpeg_std_error(&errors_.manager);
  errors_.manager.error_exit = on_jpeg_error;
  errors_.manager.emit_message = on_jpeg_message;
  try {
    guarded([&] {
      jpeg_create_decompress(&info_);
      info_.mem->max_memory_to_use = kMostMemory;
      progress_.progress_monitor = on_jpeg_progress;
      info_.progress = &progress_;
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
      jpeg_read_header(&info_, TRUE);
    });
    expect_decodable(extent());
    choose_colours();
  } catch (const um::Error&) {
    jpeg_destroy_decompress(&info_);
    throw;
  }
}

void JpegDecoder::choose_colours() {
  switch (info_.jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_RGB:
    case JCS_YCbCr:
      info_.out_color_space = JCS_EXT_RGBX;
      break;
    case JCS_CMYK:
    case JCS_YCCK:
      info_.out_color_space = JCS_CMYK;
      break;
    default:
      throw um::Error{"has " + std::to_string(info_.num_components) +
                      " channels of unknown colours; save it as RGB"};
  }
  info_.dct_method = JDCT_ISLOW;
}

// Scales 8, 4 and 2 have vector code: others are slower and worse.
unsigned JpegDecoder::shrink(double least) {
  unsigned eighths = kWholeInEighths;
  while (eighths > 1 && eighths >= 2 * least * kWholeInEighths) eighths /= 2;
  info_.scale_num = eighths;
  info_.scale_denom = kWholeInEighths;
  guarded([&] { jpeg_calc_output_dimensions(&info_); });
  return eighths;
}

void JpegDecoder::decode(const PixelRange& range,
                         const std::function<void(const std::uint8_t*)>& on_row) {
  guarded([&] { jpeg_start_decompress(&info_); });
  // Pixels at the edge of the decoded range lack neighbours for their colours.
  const std::size_t begin = range.left - std::min<std::size_t>(range.left, 2);
  const std::size_t end = std::min<std::size_t>(range.right + 2, info_.output_width);
  auto left = static_cast<JDIMENSION>(begin);
  auto width = static_cast<JDIMENSION>(end - begin);
  guarded([&] {
    if (width < info_.output_width) jpeg_crop_scanline(&info_, &left, &width);
    if (range.top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(range.top));
  });
  std::vector<std::uint8_t> row(std::size_t{info_.output_width} * kPixelBytes);
  for (std::size_t y = range.top; y < range.bottom; ++y) {
    read_row(row.data());
    if (is_of_inks()) inks_to_colours(row.data(), info_.output_width, info_.saw_Adobe_marker != 0);
    on_row(row.data() + (range.left - left) * kPixelBytes);
  }
}

void JpegDecoder::read_row(std::uint8_t* row) {
  guarded([&] { jpeg_read_scanlines(&info_, &row, 1); });
}

}  // namespace

std::unique_ptr<ImageDecoder> open_jpeg(std::span<const std::byte> file) {
  return std::make_unique<JpegDecoder>(file);
}

}  // namespace spillway

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "src/io/data/dataset.h"
#include "tests/src/io/images/image_files.h"

namespace spillway::test {

/// The result of opening an unusual image.
enum class Fate : std::uint8_t {
  kSkipped,  ///< an error that names it, or one more skipped file
  kRefused,  ///< an error about the folder, whatever the rule for broken files
  kRead      ///< the image is valid
};

/// A kind of broken or unusual image, or of folder of images.
struct BrokenKind {
  std::string name;  ///< "JpegWithoutItsEnd"
  Fate fate;
  /// Puts it into a valid folder of images.
  std::function<void(const ImageTree&)> make;
  std::string file = {};   ///< the skipped or read file; empty for a class that is read
  std::string words = {};  ///< the error after the file's name, or a part of it
  /// Called after the folder has been opened; may be empty.
  std::function<void(const ImageTree&)> meanwhile = {};
  bool is_listed = true;  ///< a skipped file is in the data set, without a label
};

inline std::ostream& operator<<(std::ostream& stream, const BrokenKind& kind) {
  return stream << kind.name;
}

/// Returns more than thirty kinds.
[[nodiscard]] std::vector<BrokenKind> broken_kinds();

}  // namespace spillway::test

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "src/io/data/dataset.h"
#include "tests/src/io/images/image_tree.h"

namespace spillway::test {

/// What becomes of an image that is odd.
enum class Fate : std::uint8_t {
  kSkipped,  ///< a sentence that names it, or one that is counted
  kRefused,  ///< a sentence about the folder, whatever is to happen with broken files
  kRead      ///< it is whole
};

/// A kind of image, or of folder of images, that people have and that is not as it should be.
struct BrokenKind {
  std::string name;  ///< "JpegWithoutItsEnd"
  Fate fate;
  /// Puts it into a folder of images that is as it should be.
  std::function<void(const ImageTree&)> make;
  std::string file = {};   ///< of a skipped one; of one that is read, empty where it is a class
  std::string words = {};  ///< of a sentence: what follows the file's name, or a part of it
  /// What happens after the folder has been opened; empty: nothing.
  std::function<void(const ImageTree&)> meanwhile = {};
  bool is_listed = true;  ///< a skipped one is of the data set, but has no label
};

inline std::ostream& operator<<(std::ostream& stream, const BrokenKind& kind) {
  return stream << kind.name;
}

/// More than thirty of them.
[[nodiscard]] std::vector<BrokenKind> broken_kinds();

}  // namespace spillway::test

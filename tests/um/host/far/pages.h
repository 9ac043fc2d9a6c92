#pragma once

#include <algorithm>
#include <cstring>

#include "um/machine/mapping.h"

namespace spillway::um {

/// Page-aligned bytes.
class Pages {
 public:
  explicit Pages(Bytes size, int value = 0) : bytes_{map_memory(size)} {
    std::memset(bytes_.data(), value, bytes_.size());
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { unmap_memory(bytes_); }
  [[nodiscard]] Range bytes() const { return bytes_; }
  [[nodiscard]] bool is_all(int value) const {
    return std::all_of(bytes_.begin(), bytes_.end(),
                       [&](std::byte b) { return b == static_cast<std::byte>(value); });
  }

 private:
  Range bytes_;
};

}  // namespace spillway::um

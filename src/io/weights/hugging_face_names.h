#pragma once

#include <vector>

#include "src/io/weights/name_table.h"

namespace spillway {

/// The names that transformers' save_pretrained() gives, network by network.
[[nodiscard]] std::vector<NameTable> hugging_face_names();

}  // namespace spillway

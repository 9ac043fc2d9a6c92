#pragma once

#include <vector>

#include "src/io/weights/name_table.h"

namespace spillway {

/// Returns the tables of names that transformers' save_pretrained() writes, one per kind of
/// network.
[[nodiscard]] std::vector<NameTable> hugging_face_names();

}  // namespace spillway

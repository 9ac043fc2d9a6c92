#include "src/weights/name_table.h"

#include <iterator>

#include "src/weights/hugging_face_names.h"
#include "src/weights/torchvision_names.h"

namespace spillway {

std::string to_string(WeightSource source) {
  return source == WeightSource::kHuggingFace ? "Hugging Face" : "torchvision";
}

std::string title(const NameTable& table) {
  return to_string(table.source) + "'s " + table.network;
}

std::vector<NameTable> all_name_tables(std::span<const StoredTensor> arrays) {
  std::vector<NameTable> tables = hugging_face_names();
  std::ranges::move(torchvision_names(arrays), std::back_inserter(tables));
  return tables;
}

}  // namespace spillway

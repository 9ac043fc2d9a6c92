#include "src/cli/train/confusion_matrix.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <iostream>

#include "um/error.h"

namespace spillway::cli {

void write_confusion_matrix(std::span<const std::uint64_t> confusion, const std::string& path) {
  const auto classes =
      static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(confusion.size()))));
  std::string text = "label";
  for (std::size_t c = 0; c < classes; ++c) text += fmt::format(",{}", c);
  text += '\n';
  for (std::size_t label = 0; label < classes; ++label) {
    const auto row = confusion.subspan(label * classes, classes);
    text += fmt::format("{},{}\n", label, fmt::join(row, ","));
  }
  std::ofstream file;
  if (path != "-") file.open(path);
  std::ostream& out = path == "-" ? std::cout : file;
  out << text << std::flush;
  if (!out) {
    throw um::system_error("cannot write " + (path == "-" ? "to standard output" : path), errno);
  }
}

}  // namespace spillway::cli

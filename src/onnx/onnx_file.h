#pragma once

#include <filesystem>
#include <string_view>

#include "src/onnx/onnx_model.h"

namespace spillway {

/// Whether this build reads and writes ONNX files. Where it was built without ONNX's library, the
/// functions below throw um::Error, which says so.
[[nodiscard]] bool has_onnx_library();

/// Throws: um::Error where this build does neither, for a sentence that comes before any work.
void expect_onnx_library(const std::filesystem::path& path);

/// Whether a name is that of an ONNX file: it ends in ".onnx".
[[nodiscard]] inline bool is_onnx_file(std::string_view name) { return name.ends_with(".onnx"); }

/// Reads a file of at most 2 GiB, and the arrays that it keeps in files beside it. Floats of 16 and
/// 64 bits become those of 32. Throws: um::Error, one sentence that names the file, and the array
/// that is cut off, has numbers of another type, or is in a file of another folder; also where its
/// operators are older than kOldestOnnxOperators.
[[nodiscard]] OnnxModel read_onnx(const std::filesystem::path& path);

/// Writes `model` as one file; one that is there is replaced as a whole, or stays. Throws:
/// um::Error when it cannot be written, or would be larger than the 2 GiB that ONNX files may have.
void write_onnx(OnnxModel model, const std::filesystem::path& path);

}  // namespace spillway

#include "src/io/onnx/onnx_model.h"
#include "um/error.h"

namespace spillway {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path) {
  throw um::Error{"ONNX is not part of this build, which " + path.string() +
                  " needs; install libonnx-dev and libprotobuf-dev and build again"};
}

}  // namespace

bool has_onnx_library() { return false; }

void expect_onnx_library(const std::filesystem::path& path) { refuse(path); }

OnnxModel read_onnx(const std::filesystem::path& path) { refuse(path); }

void write_onnx(OnnxModel /*model*/, const std::filesystem::path& path) { refuse(path); }

}  // namespace spillway

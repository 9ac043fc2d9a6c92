#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "nets/shape.h"
#include "src/io/onnx/onnx_model.h"
#include "src/ops/narrow_floats.h"
#include "um/error.h"
#include "um/files/folder.h"
#include "um/files/input_file.h"

namespace spillway {
namespace {

/// The place of an array's bytes in a file beside the ONNX file.
struct ExternalPlace {
  std::filesystem::path location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;  ///< nothing: the array's own length
};

/// The arrays that an ONNX file keeps in files beside it. Such a file may be untrusted: reads only
/// files of its folder, and no more bytes than they hold.
class ExternalArrays {
 public:
  /// `folder` is the ONNX file's.
  explicit ExternalArrays(std::filesystem::path folder) : folder_{std::move(folder)} {}

  /// Returns the `bytes` bytes of an array. Throws: um::Error "array 'name' ..." when they are
  /// missing, the place has another length, or overlapping arrays add up to more bytes than the
  /// files hold.
  [[nodiscard]] std::string read(const std::string& name, const ExternalPlace& place,
                                 std::uint64_t bytes);

 private:
  std::filesystem::path folder_;
  std::set<std::string> known_;  // files read so far
  std::uint64_t all_ = 0;        // bytes of all of them
  std::uint64_t read_ = 0;       // bytes read
};

namespace fs = std::filesystem;

um::Error array_error(const std::string& name, const std::string& complaint) {
  return um::Error{"array '" + name + "' " + complaint};
}

void expect_beside(const std::string& name, const fs::path& folder, const fs::path& location) {
  if (location.native().find('\0') != std::string::npos) {
    throw array_error(name, "is in a file whose name has a zero byte, which no file has");
  }
  if (!um::is_file_name(location.native())) {
    throw array_error(name, "is in '" + location.string() + "', which is no file beside it");
  }
  std::error_code ignored;
  if (fs::is_symlink(folder / location, ignored)) {
    throw array_error(
        name, "is in '" + location.string() + "', which is a link; put the file itself beside it");
  }
}

std::string ExternalArrays::read(const std::string& name, const ExternalPlace& place,
                                 std::uint64_t bytes) {
  expect_beside(name, folder_, place.location);
  const um::InputFile file{folder_ / place.location};
  const bool is_inside =
      place.offset <= file.size() && place.length.value_or(bytes) <= file.size() - place.offset;
  if (!is_inside) {
    throw array_error(name, "goes beyond the end of " + place.location.string());
  }
  if (place.length.value_or(bytes) != bytes) {
    throw array_error(name, "does not have as many numbers as its shape says");
  }
  if (known_.insert(place.location.string()).second) all_ += file.size();
  if (bytes > all_ - std::min(all_, read_)) {
    throw array_error(name,
                      "takes numbers of " + place.location.string() + " that other arrays have");
  }
  read_ += bytes;
  std::string content(bytes, '\0');
  file.read(place.offset, std::as_writable_bytes(std::span{content}));
  return content;
}

namespace fs = std::filesystem;
using ::onnx::TensorProto;

constexpr std::uint64_t kLargestMessage = std::numeric_limits<std::int32_t>::max();

// Lets protobuf read a file from beginning to end.
class ProtobufSource final : public google::protobuf::io::CopyingInputStream {
 public:
  explicit ProtobufSource(const um::InputFile& file) : file_{file} {}

  int Read(void* buffer, int size) override {
    const auto rest =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(size), file_.size() - offset_);
    try {
      file_.read(offset_, {static_cast<std::byte*>(buffer), rest});
    } catch (...) {  // exceptions must not pass through protobuf
      failure_ = std::current_exception();
      return -1;
    }
    offset_ += rest;
    return static_cast<int>(rest);
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  const um::InputFile& file_;
  std::uint64_t offset_ = 0;
  std::exception_ptr failure_;
};

float float_of(double number) { return static_cast<float>(number); }
float float_of_brain(std::uint16_t bits) { return Bfloat16::from_bits(bits); }
std::int64_t integer_of(std::int64_t number) { return number; }

bool is_of_onnx(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

// Converts protobuf's message to plain data.
class ModelReading {
 public:
  explicit ModelReading(fs::path path) : path_{std::move(path)}, beside_{path_.parent_path()} {}

  [[nodiscard]] OnnxModel read() {
    ::onnx::ModelProto proto = parse();
    if (!proto.has_graph() || proto.graph().node_size() == 0) throw error("it is no ONNX model");
    ::onnx::GraphProto& graph = *proto.mutable_graph();
    if (static_cast<std::size_t>(graph.node_size()) > nets::kMaxLayers) {
      throw error("it has more than " + std::to_string(nets::kMaxLayers) + " nodes");
    }
    OnnxModel model{
        .name = graph.name(), .producer = proto.producer_name(), .operators = version_of(proto)};
    for (const auto& entry : proto.metadata_props()) model.metadata[entry.key()] = entry.value();
    for (TensorProto& tensor : *graph.mutable_initializer()) {
      model.tensors.push_back(tensor_of(tensor));
      tensor.Clear();  // otherwise all arrays are in memory twice
    }
    for (const auto& value : graph.input()) model.inputs.push_back(value_of(value));
    for (const auto& value : graph.output()) model.outputs.push_back(value_of(value));
    for (auto& node : *graph.mutable_node()) model.nodes.push_back(node_of(node));
    return model;
  }

 private:
  [[nodiscard]] um::Error error(const std::string& why) const {
    return um::Error{"cannot read " + path_.string() + ": " + why};
  }

  [[nodiscard]] ::onnx::ModelProto parse() const {
    const um::InputFile file{path_};
    if (file.size() > kLargestMessage) throw error("it is larger than the 2 GiB of an ONNX file");
    ProtobufSource source{file};
    google::protobuf::io::CopyingInputStreamAdaptor stream{&source};
    ::onnx::ModelProto proto;
    const bool is_whole = proto.ParsePartialFromZeroCopyStream(&stream);
    source.rethrow();
    if (!is_whole) throw error("it is no ONNX file, or cut off");
    return proto;
  }

  // Version of ONNX's operators.
  [[nodiscard]] std::int64_t version_of(const ::onnx::ModelProto& proto) const {
    std::int64_t version = 0;
    for (const auto& set : proto.opset_import()) {
      if (is_of_onnx(set.domain())) version = set.version();
    }
    if (version >= kOldestOnnxOperators) return version;
    throw error(version == 0
                    ? "it does not say which version of ONNX's operators it has"
                    : "it has ONNX's operators of version " + std::to_string(version) + "; " +
                          std::to_string(kOldestOnnxOperators) + " and later are read");
  }

  [[nodiscard]] OnnxTensor tensor_of(const TensorProto& proto) {
    OnnxTensor tensor{.name = proto.name()};
    std::size_t count = 1;
    for (const std::int64_t extent : proto.dims()) {
      if (extent < 0) throw error("array '" + proto.name() + "' has a negative size");
      tensor.shape.push_back(static_cast<std::size_t>(extent));
      count = nets::saturated_product({count, tensor.shape.back()});
    }
    fill(tensor, proto, count);
    if (std::max(tensor.floats.size(), tensor.integers.size()) != count) {
      throw error("array '" + proto.name() + "' does not have as many numbers as its shape says");
    }
    return tensor;
  }

  void fill(OnnxTensor& tensor, const TensorProto& proto, std::size_t count) {
    const std::string bytes = bytes_of(proto, count);
    const auto& shorts = proto.int32_data();
    switch (proto.data_type()) {
      case TensorProto::FLOAT:
        tensor.floats = numbers_of<float>(proto, bytes, proto.float_data(), float_of);
        return;
      case TensorProto::DOUBLE:
        tensor.floats = numbers_of<double>(proto, bytes, proto.double_data(), float_of);
        return;
      case TensorProto::FLOAT16:
        tensor.floats = numbers_of<std::uint16_t>(proto, bytes, shorts, float_of_half);
        return;
      case TensorProto::BFLOAT16:
        tensor.floats = numbers_of<std::uint16_t>(proto, bytes, shorts, float_of_brain);
        return;
      case TensorProto::INT64:
        tensor.integers = numbers_of<std::int64_t>(proto, bytes, proto.int64_data(), integer_of);
        return;
      case TensorProto::INT32:
        tensor.integers = numbers_of<std::int32_t>(proto, bytes, shorts, integer_of);
        return;
      case TensorProto::BOOL:
        tensor.integers = numbers_of<std::uint8_t>(proto, bytes, shorts, integer_of);
        return;
      default:
        throw other_type(proto);
    }
  }

  [[nodiscard]] um::Error other_type(const TensorProto& proto) const {
    return error("array '" + proto.name() + "' has numbers of ONNX's type " +
                 std::to_string(proto.data_type()) +
                 "; floats of 16, 32 and 64 bits are read, and integers of 32 and 64 bits");
  }

  // Bytes of a number in the array.
  [[nodiscard]] std::size_t width_of(const TensorProto& proto) const {
    switch (proto.data_type()) {
      case TensorProto::DOUBLE:
      case TensorProto::INT64:
        return 8;
      case TensorProto::FLOAT:
      case TensorProto::INT32:
        return 4;
      case TensorProto::FLOAT16:
      case TensorProto::BFLOAT16:
        return 2;
      case TensorProto::BOOL:
        return 1;
      default:
        throw other_type(proto);
    }
  }

  // Returns the numbers of an array, converted by `convert`. Reads `bytes` as `From`, or the typed
  // field that some arrays have instead.
  template <typename From, typename Field, typename Convert>
  [[nodiscard]] std::vector<std::invoke_result_t<Convert, From>> numbers_of(
      const TensorProto& proto, const std::string& bytes, const Field& field,
      Convert convert) const {
    if (!bytes.empty() && !field.empty()) throw twice(proto);
    if (bytes.size() % sizeof(From) != 0) {
      throw error("array '" + proto.name() + "' has a number that is cut off");
    }
    std::vector<std::invoke_result_t<Convert, From>> numbers;
    numbers.reserve(bytes.size() / sizeof(From) + static_cast<std::size_t>(field.size()));
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(From)) {
      From number{};
      std::memcpy(&number, bytes.data() + at, sizeof number);
      numbers.push_back(convert(number));
    }
    for (const auto number : field) numbers.push_back(convert(static_cast<From>(number)));
    return numbers;
  }

  [[nodiscard]] um::Error twice(const TensorProto& proto) const {
    return error("array '" + proto.name() + "' has its numbers twice");
  }

  [[nodiscard]] std::string bytes_of(const TensorProto& proto, std::size_t count) {
    if (proto.data_location() != TensorProto::EXTERNAL) return proto.raw_data();
    if (!proto.raw_data().empty()) throw twice(proto);
    ExternalPlace place;
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") place.location = entry.value();
      if (entry.key() == "offset") place.offset = number_in(proto, entry.value());
      if (entry.key() == "length") place.length = number_in(proto, entry.value());
    }
    const std::size_t bytes = nets::saturated_product({count, width_of(proto)});
    try {
      return beside_.read(proto.name(), place, bytes);
    } catch (const um::Error& failure) {
      throw error(failure.what());
    }
  }

  [[nodiscard]] std::uint64_t number_in(const TensorProto& proto, const std::string& text) const {
    constexpr std::size_t kMostDigits = 18;
    const bool is_number = !text.empty() && text.size() <= kMostDigits &&
                           text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) throw error("array '" + proto.name() + "' has no place in its file");
    return std::stoull(text);
  }

  static OnnxValue value_of(const ::onnx::ValueInfoProto& proto) {
    const auto& type = proto.type().tensor_type();
    OnnxValue value{.name = proto.name(), .is_float = type.elem_type() == TensorProto::FLOAT};
    for (const auto& dimension : type.shape().dim()) {
      value.shape.push_back(dimension.dim_value() > 0
                                ? std::optional{static_cast<std::size_t>(dimension.dim_value())}
                                : std::nullopt);
    }
    return value;
  }

  [[nodiscard]] OnnxNode node_of(const ::onnx::NodeProto& proto) {
    const bool is_own = is_of_onnx(proto.domain());
    OnnxNode node{.type = (is_own ? "" : proto.domain() + ".") + proto.op_type(),
                  .name = proto.name(),
                  .inputs = {proto.input().begin(), proto.input().end()},
                  .outputs = {proto.output().begin(), proto.output().end()}};
    for (const auto& attribute : proto.attribute()) {
      node.attributes[attribute.name()] = attribute_of(attribute);
    }
    return node;
  }

  [[nodiscard]] OnnxAttribute attribute_of(const ::onnx::AttributeProto& proto) {
    switch (proto.type()) {
      case ::onnx::AttributeProto::INT:
        return proto.i();
      case ::onnx::AttributeProto::FLOAT:
        return proto.f();
      case ::onnx::AttributeProto::STRING:
        return proto.s();
      case ::onnx::AttributeProto::INTS:
        return std::vector<std::int64_t>{proto.ints().begin(), proto.ints().end()};
      case ::onnx::AttributeProto::TENSOR:
        return tensor_of(proto.t());
      default:
        return std::monostate{};
    }
  }

  fs::path path_;
  ExternalArrays beside_;
};

}  // namespace

bool has_onnx_library() { return true; }

void expect_onnx_library(const fs::path& /*path*/) {}

OnnxModel read_onnx(const fs::path& path) { return ModelReading{path}.read(); }

}  // namespace spillway

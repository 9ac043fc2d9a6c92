#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include "nets/limits.h"
#include "nets/saturated.h"
#include "src/numbers/narrow_floats.h"
#include "src/onnx/onnx_file.h"
#include "um/error.h"
#include "um/files/input_file.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;
using ::onnx::TensorProto;

constexpr std::uint64_t kLargestMessage = std::numeric_limits<std::int32_t>::max();

// A file for protobuf, from its beginning to its end.
class ProtobufSource final : public google::protobuf::io::CopyingInputStream {
 public:
  explicit ProtobufSource(const um::InputFile& file) : file_{file} {}

  int Read(void* buffer, int size) override {
    const auto rest =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(size), file_.size() - offset_);
    try {
      file_.read(offset_, {static_cast<std::byte*>(buffer), rest});
    } catch (...) {  // not through protobuf
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

// The numbers of an array, each by `convert`: those that its bytes are as `From`, and those of the
// field that arrays of its type may have instead.
template <typename From, typename Field, typename Convert>
auto numbers_of(const std::string& bytes, const Field& field, Convert convert) {
  std::vector<decltype(convert(From{}))> numbers;
  numbers.reserve(bytes.size() / sizeof(From) + static_cast<std::size_t>(field.size()));
  for (std::size_t at = 0; at + sizeof(From) <= bytes.size(); at += sizeof(From)) {
    From number{};
    std::memcpy(&number, bytes.data() + at, sizeof number);
    numbers.push_back(convert(number));
  }
  for (const auto number : field) numbers.push_back(convert(static_cast<From>(number)));
  return numbers;
}

float float_of(double number) { return static_cast<float>(number); }
float float_of_brain(std::uint16_t bits) { return Bfloat16::from_bits(bits); }
std::int64_t integer_of(std::int64_t number) { return number; }

// What protobuf has read, as plain data.
class ModelReading {
 public:
  explicit ModelReading(fs::path path) : path_{std::move(path)} {}

  [[nodiscard]] OnnxModel read() {
    ::onnx::ModelProto proto = parse();
    if (!proto.has_graph() || proto.graph().node_size() == 0) throw error("it is no ONNX model");
    ::onnx::GraphProto& graph = *proto.mutable_graph();
    if (static_cast<std::size_t>(graph.node_size()) > nets::kMaxLayers) {
      throw error("it has more than " + std::to_string(nets::kMaxLayers) + " nodes");
    }
    OnnxModel model{.name = graph.name(), .producer = proto.producer_name()};
    for (const auto& entry : proto.metadata_props()) model.metadata[entry.key()] = entry.value();
    for (TensorProto& tensor : *graph.mutable_initializer()) {
      model.tensors.push_back(tensor_of(tensor));
      tensor.Clear();  // or all of it is in memory twice
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

  [[nodiscard]] OnnxTensor tensor_of(const TensorProto& proto) const {
    OnnxTensor tensor{.name = proto.name()};
    std::size_t count = 1;
    for (const std::int64_t extent : proto.dims()) {
      if (extent < 0) throw error("array '" + proto.name() + "' has a negative size");
      tensor.shape.push_back(static_cast<std::size_t>(extent));
      count = nets::saturated_product({count, tensor.shape.back()});
    }
    fill(tensor, proto);
    if (std::max(tensor.floats.size(), tensor.integers.size()) != count) {
      throw error("array '" + proto.name() + "' does not have as many numbers as its shape says");
    }
    return tensor;
  }

  void fill(OnnxTensor& tensor, const TensorProto& proto) const {
    const std::string bytes = bytes_of(proto);
    const auto& shorts = proto.int32_data();
    switch (proto.data_type()) {
      case TensorProto::FLOAT:
        tensor.floats = numbers_of<float>(bytes, proto.float_data(), float_of);
        return;
      case TensorProto::DOUBLE:
        tensor.floats = numbers_of<double>(bytes, proto.double_data(), float_of);
        return;
      case TensorProto::FLOAT16:
        tensor.floats = numbers_of<std::uint16_t>(bytes, shorts, float_of_half);
        return;
      case TensorProto::BFLOAT16:
        tensor.floats = numbers_of<std::uint16_t>(bytes, shorts, float_of_brain);
        return;
      case TensorProto::INT64:
        tensor.integers = numbers_of<std::int64_t>(bytes, proto.int64_data(), integer_of);
        return;
      case TensorProto::INT32:
        tensor.integers = numbers_of<std::int32_t>(bytes, shorts, integer_of);
        return;
      case TensorProto::BOOL:
        tensor.integers = numbers_of<std::uint8_t>(bytes, shorts, integer_of);
        return;
      default:
        throw error("array '" + proto.name() + "' has numbers of ONNX's type " +
                    std::to_string(proto.data_type()) +
                    "; floats of 16, 32 and 64 bits are read, and integers of 32 and 64 bits");
    }
  }

  [[nodiscard]] std::string bytes_of(const TensorProto& proto) const {
    if (proto.data_location() != TensorProto::EXTERNAL) return proto.raw_data();
    fs::path location;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") location = entry.value();
      if (entry.key() == "offset") offset = number_in(proto, entry.value());
      if (entry.key() == "length") length = number_in(proto, entry.value());
    }
    // Nothing of elsewhere on this machine.
    if (location.empty() || location.filename() != location || location == "." ||
        location == "..") {
      throw error("array '" + proto.name() + "' is in '" + location.string() +
                  "', which is no file beside it");
    }
    const um::InputFile file{path_.parent_path() / location};
    if (offset > file.size() || length.value_or(0) > file.size() - offset) {
      throw error("array '" + proto.name() + "' goes beyond the end of " + location.string());
    }
    std::string bytes(length.value_or(file.size() - offset), '\0');
    file.read(offset, std::as_writable_bytes(std::span{bytes}));
    return bytes;
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

  [[nodiscard]] OnnxNode node_of(const ::onnx::NodeProto& proto) const {
    const bool is_own = proto.domain().empty() || proto.domain() == "ai.onnx";
    OnnxNode node{.type = (is_own ? "" : proto.domain() + ".") + proto.op_type(),
                  .name = proto.name(),
                  .inputs = {proto.input().begin(), proto.input().end()},
                  .outputs = {proto.output().begin(), proto.output().end()}};
    for (const auto& attribute : proto.attribute()) {
      node.attributes[attribute.name()] = attribute_of(attribute);
    }
    return node;
  }

  [[nodiscard]] OnnxAttribute attribute_of(const ::onnx::AttributeProto& proto) const {
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
};

}  // namespace

bool has_onnx_library() { return true; }

OnnxModel read_onnx(const fs::path& path) { return ModelReading{path}.read(); }

}  // namespace spillway

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include <exception>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "src/io/onnx/onnx_model.h"
#include "um/error.h"
#include "um/files/replaced_file.h"

namespace spillway {
namespace {

using ::onnx::TensorProto;

constexpr std::int64_t kFormat = 8;  // the version of ONNX's file format with operators 17
constexpr std::size_t kLargestFile = std::numeric_limits<std::int32_t>::max();

// Lets protobuf write to a file.
class ProtobufSink final : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit ProtobufSink(um::ReplacedFile& file) : file_{file} {}

  bool Write(const void* buffer, int size) override {
    try {
      file_.write({static_cast<const std::byte*>(buffer), static_cast<std::size_t>(size)});
    } catch (...) {  // exceptions must not pass through protobuf
      failure_ = std::current_exception();
      return false;
    }
    return true;
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  um::ReplacedFile& file_;
  std::exception_ptr failure_;
};

template <typename Number>
void set_bytes(TensorProto& proto, std::span<const Number> numbers, TensorProto::DataType type) {
  proto.set_data_type(type);
  const std::span<const std::byte> bytes = std::as_bytes(numbers);
  proto.set_raw_data(bytes.data(), bytes.size());
}

void set_tensor(TensorProto& proto, const OnnxTensor& tensor) {
  if (!tensor.name.empty()) proto.set_name(tensor.name);
  for (const std::size_t extent : tensor.shape) {
    proto.add_dims(static_cast<std::int64_t>(extent));
  }
  if (tensor.integers.empty()) {
    set_bytes<float>(proto, tensor.floats, TensorProto::FLOAT);
  } else {
    set_bytes<std::int64_t>(proto, tensor.integers, TensorProto::INT64);
  }
}

struct AttributeSetting {
  ::onnx::AttributeProto& proto;

  void operator()(std::monostate /*nothing*/) const {
    um::expects(false, "attributes with a value");
  }
  void operator()(std::int64_t value) const {
    proto.set_type(::onnx::AttributeProto::INT);
    proto.set_i(value);
  }
  void operator()(float value) const {
    proto.set_type(::onnx::AttributeProto::FLOAT);
    proto.set_f(value);
  }
  void operator()(const std::string& value) const {
    proto.set_type(::onnx::AttributeProto::STRING);
    proto.set_s(value);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    proto.set_type(::onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) proto.add_ints(value);
  }
  void operator()(const OnnxTensor& value) const {
    proto.set_type(::onnx::AttributeProto::TENSOR);
    set_tensor(*proto.mutable_t(), value);
  }
};

void set_node(::onnx::NodeProto& proto, const OnnxNode& node) {
  proto.set_op_type(node.type);
  proto.set_name(node.name);
  for (const std::string& input : node.inputs) proto.add_input(input);
  for (const std::string& output : node.outputs) proto.add_output(output);
  for (const auto& [word, value] : node.attributes) {
    ::onnx::AttributeProto& attribute = *proto.add_attribute();
    attribute.set_name(word);
    std::visit(AttributeSetting{attribute}, value);
  }
}

void set_value(::onnx::ValueInfoProto& proto, const OnnxValue& value) {
  proto.set_name(value.name);
  auto& type = *proto.mutable_type()->mutable_tensor_type();
  type.set_elem_type(value.is_float ? TensorProto::FLOAT : TensorProto::INT64);
  for (const std::optional<std::size_t>& extent : value.shape) {
    auto& dimension = *type.mutable_shape()->add_dim();
    if (extent) {
      dimension.set_dim_value(static_cast<std::int64_t>(*extent));
    } else {
      dimension.set_dim_param("batch");
    }
  }
}

// Moves the numbers out of `model`, otherwise all would be in memory twice.
::onnx::ModelProto proto_of(OnnxModel& model) {
  ::onnx::ModelProto proto;
  proto.set_ir_version(kFormat);
  proto.set_producer_name(model.producer);
  proto.add_opset_import()->set_version(model.operators);
  for (const auto& [key, value] : model.metadata) {
    auto& entry = *proto.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  ::onnx::GraphProto& graph = *proto.mutable_graph();
  graph.set_name(model.name);
  for (const OnnxValue& value : model.inputs) set_value(*graph.add_input(), value);
  for (const OnnxValue& value : model.outputs) set_value(*graph.add_output(), value);
  for (const OnnxNode& node : model.nodes) set_node(*graph.add_node(), node);
  for (OnnxTensor& tensor : model.tensors) {
    set_tensor(*graph.add_initializer(), tensor);
    tensor = {};
  }
  return proto;
}

}  // namespace

void write_onnx(OnnxModel model, const std::filesystem::path& path) {
  const ::onnx::ModelProto proto = proto_of(model);
  if (proto.ByteSizeLong() > kLargestFile) {
    throw um::Error{"cannot write " + path.string() +
                    ": the network is larger than the 2 GiB that an ONNX file may have"};
  }
  um::ReplacedFile file{path};
  ProtobufSink sink{file};
  bool is_written = false;
  {
    google::protobuf::io::CopyingOutputStreamAdaptor stream{&sink};
    is_written = proto.SerializeToZeroCopyStream(&stream) && stream.Flush();
  }
  sink.rethrow();
  if (!is_written) {
    throw um::Error{"cannot write " + path.string() + ": protobuf does not make a file of it"};
  }
  file.commit();
}

}  // namespace spillway

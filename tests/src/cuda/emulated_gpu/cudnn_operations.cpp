#include "tests/src/cuda/emulated_gpu/cudnn_operations.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tests/src/cuda/emulated_gpu/emulated_gpu.h"

namespace spillway::emulated {
namespace {

// The dimension in which one head may serve several.
constexpr std::size_t kHeads = 1;

std::size_t as_size(std::int64_t n) { return static_cast<std::size_t>(n); }

// Returns 0 for types that are not emulated.
std::size_t element_bytes(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
      return 4;
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_BOOLEAN:
      return 1;
    default:
      return 0;
  }
}

bool is_number_type(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16;
}

// Returns the dimensions of more than one element, innermost first.
std::vector<std::size_t> by_stride(const CudnnTensor& tensor) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < tensor.dims.size(); ++k) {
    if (tensor.dims[k] > 1) order.push_back(k);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return tensor.strides[a] < tensor.strides[b]; });
  return order;
}

struct ByteRange {
  const char* begin;
  const char* end;
};

// Returns the contiguous pieces of a tensor in the order of addresses.
std::vector<ByteRange> pieces(const CudnnTensor& tensor, const void* address) {
  std::vector<std::size_t> outer;
  std::int64_t run = 1;
  for (const std::size_t k : by_stride(tensor)) {
    if (outer.empty() && tensor.strides[k] == run) {
      run *= tensor.dims[k];
    } else {
      outer.push_back(k);
    }
  }
  std::vector<std::int64_t> starts{0};
  std::reverse(outer.begin(), outer.end());
  for (const std::size_t k : outer) {
    std::vector<std::int64_t> finer;
    for (const std::int64_t start : starts) {
      for (std::int64_t i = 0; i < tensor.dims[k]; ++i) {
        finer.push_back(start + i * tensor.strides[k]);
      }
    }
    starts = std::move(finer);
  }
  const auto element = static_cast<std::int64_t>(element_bytes(tensor.type));
  std::vector<ByteRange> all;
  for (const std::int64_t start : starts) {
    const char* const begin = static_cast<const char*>(address) + start * element;
    all.push_back({begin, begin + run * element});
  }
  return all;
}

}  // namespace

std::size_t CudnnTensor::count() const { return as_size(dims[0] * dims[1] * dims[2] * dims[3]); }

std::size_t CudnnTensor::extent() const {
  std::int64_t last = 0;
  for (std::size_t k = 0; k < dims.size(); ++k) last += (dims[k] - 1) * strides[k];
  return as_size(last + 1) * element_bytes(type);
}

std::string describe(const CudnnTensor& tensor) {
  std::string text = "tensor " + std::to_string(tensor.id);
  for (std::size_t k = 0; k < tensor.dims.size(); ++k) {
    text += (k == 0 ? " (" : "x") + std::to_string(tensor.dims[k]);
  }
  return text + ")";
}

bool overlap(const CudnnTensor& a, const void* at_a, const CudnnTensor& b, const void* at_b) {
  const auto begins_after = [](const void* begin, const void* other, std::size_t size) {
    return static_cast<const char*>(begin) >= static_cast<const char*>(other) + size;
  };
  if (begins_after(at_a, at_b, b.extent()) || begins_after(at_b, at_a, a.extent())) return false;
  const std::vector<ByteRange> of_a = pieces(a, at_a);
  const std::vector<ByteRange> of_b = pieces(b, at_b);
  auto i = of_a.begin();
  auto j = of_b.begin();
  while (i != of_a.end() && j != of_b.end()) {
    if (i->begin < j->end && j->begin < i->end) return true;
    if (i->end <= j->begin) {
      ++i;
    } else {
      ++j;
    }
  }
  return false;
}

std::vector<CudnnTensor> ConvolutionOperation::inputs() const {
  switch (pass) {
    case CudnnPass::kForward:
      return {x, w};
    case CudnnPass::kBackwardData:
      return {w, y};
    case CudnnPass::kBackwardFilter:
      break;
  }
  return {x, y};
}

const CudnnTensor& ConvolutionOperation::output() const {
  if (pass == CudnnPass::kForward) return y;
  return pass == CudnnPass::kBackwardData ? x : w;
}

std::vector<CudnnTensor> PointwiseOperation::inputs() const {
  std::vector<CudnnTensor> all{x};
  if (b) all.push_back(*b);
  if (selector) all.push_back(*selector);
  return all;
}

std::vector<CudnnTensor> inputs_of(const CudnnOperation& operation) {
  return std::visit([](const auto& op) { return op.inputs(); }, operation);
}

const CudnnTensor& output_of(const CudnnOperation& operation) {
  return std::visit([](const auto& op) -> const CudnnTensor& { return op.output(); }, operation);
}

void check(const CudnnTensor& tensor) {
  const std::string name = describe(tensor);
  const std::size_t element = element_bytes(tensor.type);
  if (element == 0) throw NotSupported{name + " has a type that is not emulated"};
  for (std::size_t k = 0; k < tensor.dims.size(); ++k) {
    require(tensor.dims[k] > 0, name + " has a dimension without elements");
    require(tensor.strides[k] > 0, name + " has a stride that is not positive");
  }
  const std::int64_t alignment = tensor.alignment;
  require(alignment > 0 && (alignment & (alignment - 1)) == 0 && as_size(alignment) >= element,
          name + " has an alignment that is not a power of two of at least an element");
  std::int64_t end = 1;  // of the inner dimensions
  for (const std::size_t k : by_stride(tensor)) {
    require(tensor.strides[k] >= end, name + " has strides that map two elements to one address");
    end = (tensor.dims[k] - 1) * tensor.strides[k] + end;
  }
  if (!tensor.is_by_value) return;
  require(!tensor.is_virtual, name + " is both virtual and by value");
  require(tensor.count() == 1 && tensor.type == CUDNN_DATA_FLOAT,
          name + " is by value, but not one float");
}

namespace {

void check_fit(const ConvolutionOperation& op) {
  const std::string name =
      "the convolution of " + describe(op.x) + " with " + describe(op.w) + " to " + describe(op.y);
  for (const CudnnTensor& tensor : op.inputs()) {
    require(is_number_type(tensor.type), name + " reads elements that are not numbers");
  }
  require(op.inputs()[0].type == op.inputs()[1].type, name + " reads tensors of two types");
  require(is_number_type(op.output().type), name + " writes elements that are not numbers");
  const Dims& x = op.x.dims;
  const Dims& w = op.w.dims;
  const Dims& y = op.y.dims;
  require(x[0] == y[0], name + " has two batch sizes");
  require(x[1] % w[1] == 0, name + " has channels that are not whole groups");
  require(w[0] % (x[1] / w[1]) == 0, name + " has filters that are not whole groups");
  require(y[1] == w[0], name + " has a number of results that differs from that of its filters");
  for (std::size_t axis = 0; axis < 2; ++axis) {
    require(op.stride[axis] > 0 && op.dilation[axis] > 0,
            name + " has a stride or dilation that is not positive");
    require(op.before[axis] >= 0 && op.after[axis] >= 0, name + " has negative padding");
    const std::int64_t reach = op.dilation[axis] * (w[2 + axis] - 1) + 1;
    const std::int64_t space = x[2 + axis] + op.before[axis] + op.after[axis] - reach;
    require(space >= 0, name + " has a filter larger than the padded image");
    require(y[2 + axis] == space / op.stride[axis] + 1,
            name + " has a result whose size does not follow from padding, stride and dilation");
  }
}

// Requires that `small` can be read at each index of `y`.
void require_broadcast(const CudnnTensor& small, const CudnnTensor& y) {
  for (std::size_t k = 0; k < y.dims.size(); ++k) {
    require(small.dims[k] == y.dims[k] || small.dims[k] == 1,
            describe(small) + " cannot be repeated to " + describe(y));
  }
}

// Returns the number of tensors that a mode reads, the selector included.
std::size_t arity(cudnnPointwiseMode_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_RELU_FWD:
    case CUDNN_POINTWISE_GEN_INDEX:
      return 1;
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_MAX:
    case CUDNN_POINTWISE_MIN:
    case CUDNN_POINTWISE_CMP_EQ:
    case CUDNN_POINTWISE_CMP_GT:
    case CUDNN_POINTWISE_CMP_GE:
    case CUDNN_POINTWISE_CMP_LT:
    case CUDNN_POINTWISE_CMP_LE:
      return 2;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return 3;
    default:
      throw NotSupported{"pointwise mode " + std::to_string(mode) + " is not emulated"};
  }
}

void check_fit(const PointwiseOperation& op) {
  const std::string name = "the pointwise operation to " + describe(op.y);
  const std::size_t count = arity(op.mode);
  require(op.b.has_value() == (count > 1), name + " has a wrong number of tensors");
  require(op.selector.has_value() == (count > 2), name + " has a wrong number of tensors");
  if (op.selector) {
    require(op.selector->type == CUDNN_DATA_BOOLEAN, name + " selects by what is not boolean");
  }
  if (op.mode == CUDNN_POINTWISE_GEN_INDEX) {
    require(op.axis && *op.axis >= 0 && *op.axis < 4, name + " has no axis to count along");
  }
  for (const CudnnTensor& tensor : op.inputs()) require_broadcast(tensor, op.y);
}

void check_fit(const MatmulOperation& op) {
  const std::string name =
      "the product of " + describe(op.a) + " and " + describe(op.b) + " to " + describe(op.c);
  const Dims& a = op.a.dims;
  const Dims& b = op.b.dims;
  const Dims& c = op.c.dims;
  for (const CudnnTensor* tensor : {&op.a, &op.b, &op.c}) {
    require(is_number_type(tensor->type), name + " has elements that are not numbers");
  }
  require(a[3] == b[2] && c[2] == a[2] && c[3] == b[3], name + " has sizes that do not fit");
  require(a[0] == c[0] && b[0] == c[0], name + " has two batch sizes");
  require(c[kHeads] == std::max(a[kHeads], b[kHeads]), name + " has a wrong number of heads");
  require(c[kHeads] % a[kHeads] == 0 && c[kHeads] % b[kHeads] == 0,
          name + " has heads that cannot be shared evenly");
}

void check_fit(const ReductionOperation& op) {
  const std::string name = "the reduction of " + describe(op.x) + " to " + describe(op.y);
  if (op.mode != CUDNN_REDUCE_TENSOR_ADD && op.mode != CUDNN_REDUCE_TENSOR_MAX) {
    throw NotSupported{name + " has a mode that is not emulated"};
  }
  require(is_number_type(op.x.type) && is_number_type(op.y.type),
          name + " has elements that are not numbers");
  for (std::size_t k = 0; k < op.x.dims.size(); ++k) {
    const bool is_shared = k == kHeads && op.x.dims[k] % op.y.dims[k] == 0;
    require(is_shared || op.y.dims[k] == op.x.dims[k] || op.y.dims[k] == 1,
            name + " has sizes that do not fit");
  }
}

void check_fit(const ReshapeOperation& op) {
  const std::string name = "the reshape of " + describe(op.x) + " to " + describe(op.y);
  require(op.x.type == op.y.type ||
              (op.x.is_virtual && is_number_type(op.x.type) && is_number_type(op.y.type)),
          name + " changes the type of memory");
  require(op.x.count() == op.y.count(), name + " changes the number of elements");
}

// Returns the elements between neighbours of a dense tensor with these dimensions.
Dims dense_strides(const Dims& dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

// Calls f(indices of the first element, number of the first element) for each row of the last
// dimension.
template <class Function>
void each_row(const Dims& dims, const Function& f) {
  std::size_t first = 0;
  for (std::int64_t n = 0; n < dims[0]; ++n) {
    for (std::int64_t c = 0; c < dims[1]; ++c) {
      for (std::int64_t h = 0; h < dims[2]; ++h, first += as_size(dims[3])) {
        f(Dims{n, c, h, 0}, first);
      }
    }
  }
}

// Maps the indices of a larger tensor to elements of a dense one.
class Repeated {
 public:
  Repeated(const CudnnTensor& small, const CudnnTensor& large)
      : strides_{dense_strides(small.dims)} {
    for (std::size_t k = 0; k < strides_.size(); ++k) {
      share_[k] = large.dims[k] / small.dims[k];
      if (small.dims[k] == 1) strides_[k] = 0;
    }
  }

  [[nodiscard]] std::size_t row(const Dims& i) const {
    return as_size(i[0] * strides_[0] + i[1] / share_[1] * strides_[1] + i[2] * strides_[2]);
  }
  // Returns the distance between neighbours in a row.
  [[nodiscard]] std::size_t step() const { return as_size(strides_[3]); }

 private:
  Dims strides_;
  Dims share_{};
};

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Dense elements in the order of the dimensions.
using Values = std::vector<float>;

// Calls f(number of the dense element, place in memory in elements) for all elements.
template <class Function>
void each_place(const CudnnTensor& tensor, const Function& f) {
  const Dims& strides = tensor.strides;
  each_row(tensor.dims, [&](const Dims& i, std::size_t first) {
    std::int64_t place = i[0] * strides[0] + i[1] * strides[1] + i[2] * strides[2];
    for (std::int64_t w = 0; w < tensor.dims[3]; ++w, place += strides[3]) {
      f(first + as_size(w), as_size(place));
    }
  });
}

Values load(const CudnnTensor& tensor, const void* memory) {
  Values values(tensor.count());
  if (tensor.type == CUDNN_DATA_BFLOAT16) {
    const auto* const from = static_cast<const std::uint16_t*>(memory);
    each_place(tensor, [&](std::size_t i, std::size_t at) { values[i] = from_bf16(from[at]); });
  } else {
    const auto* const from = static_cast<const float*>(memory);
    each_place(tensor, [&](std::size_t i, std::size_t at) { values[i] = from[at]; });
  }
  return values;
}

void store(const CudnnTensor& tensor, const Values& values, void* memory) {
  if (tensor.type == CUDNN_DATA_BFLOAT16) {
    auto* const to = static_cast<std::uint16_t*>(memory);
    each_place(tensor, [&](std::size_t i, std::size_t at) { to[at] = to_bf16(values[i]); });
  } else {
    auto* const to = static_cast<float*>(memory);
    each_place(tensor, [&](std::size_t i, std::size_t at) { to[at] = values[i]; });
  }
}

Values transposed(const float* matrix, std::size_t rows, std::size_t columns) {
  Values result(rows * columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) result[j * rows + i] = matrix[i * columns + j];
  }
  return result;
}

// Computes a convolution group by group as a product with the matrix of all patches of an image:
// (channels x kernel height x kernel width) rows, one column for each place of the filter.
class Convolution {
 public:
  explicit Convolution(const ConvolutionOperation& op)
      : op_{op},
        groups_{as_size(op.x.dims[1] / op.w.dims[1])},
        filters_{as_size(op.w.dims[0]) / groups_},
        patch_{as_size(op.w.dims[1] * op.w.dims[2] * op.w.dims[3])},
        places_{as_size(op.y.dims[2] * op.y.dims[3])},
        group_image_{as_size(op.w.dims[1] * op.x.dims[2] * op.x.dims[3])} {}

  Values run(const Values& first, const Values& second) {
    Values result(op_.output().count());
    patches_.resize(patch_ * places_);
    for (std::size_t image = 0; image < as_size(op_.x.dims[0]); ++image) {
      for (std::size_t group = 0; group < groups_; ++group) {
        const std::size_t part = image * groups_ + group;
        const std::size_t x = part * group_image_;
        const std::size_t w = group * filters_ * patch_;
        const std::size_t y = part * filters_ * places_;
        if (op_.pass == CudnnPass::kForward) {
          gather(&first[x]);
          add_product(filters_, places_, patch_, &second[w], patches_.data(), &result[y]);
        } else if (op_.pass == CudnnPass::kBackwardData) {
          std::fill(patches_.begin(), patches_.end(), 0.F);
          add_product(patch_, places_, filters_, transposed(&first[w], filters_, patch_).data(),
                      &second[y], patches_.data());
          scatter(&result[x]);
        } else {
          gather(&first[x]);
          add_product(filters_, patch_, places_, &second[y],
                      transposed(patches_.data(), patch_, places_).data(), &result[w]);
        }
      }
    }
    return result;
  }

 private:
  // Calls f(element of patches_, element of a group's image) for all elements that are not padding.
  template <class Function>
  void each_element(const Function& f) const {
    std::int64_t element = 0;
    const Dims& x = op_.x.dims;
    const Dims& w = op_.w.dims;
    const std::int64_t columns = op_.y.dims[3];
    const std::int64_t step = op_.stride[1];
    for (std::int64_t c = 0; c < w[1]; ++c) {
      for (std::int64_t r = 0; r < w[2]; ++r) {
        for (std::int64_t s = 0; s < w[3]; ++s) {
          // The columns of y that do not read padding.
          const std::int64_t left = s * op_.dilation[1] - op_.before[1];
          const std::int64_t begin = left < 0 ? (-left + step - 1) / step : 0;
          const std::int64_t end = std::min(columns, (x[3] - left + step - 1) / step);
          for (std::int64_t p = 0; p < op_.y.dims[2]; ++p, element += columns) {
            const std::int64_t row = p * op_.stride[0] - op_.before[0] + r * op_.dilation[0];
            if (row < 0 || row >= x[2]) continue;
            const std::int64_t pixel = (c * x[2] + row) * x[3] + left;
            for (std::int64_t q = begin; q < end; ++q) {
              f(as_size(element + q), as_size(pixel + q * step));
            }
          }
        }
      }
    }
  }
  // Padding stays zero.
  void gather(const float* image) {
    each_element([&](std::size_t patch, std::size_t pixel) { patches_[patch] = image[pixel]; });
  }
  void scatter(float* image) const {
    each_element([&](std::size_t patch, std::size_t pixel) { image[pixel] += patches_[patch]; });
  }

  const ConvolutionOperation& op_;
  std::size_t groups_;
  std::size_t filters_;      // of a group
  std::size_t patch_;        // elements of a filter
  std::size_t places_;       // of a filter in an image
  std::size_t group_image_;  // elements of an image's group
  Values patches_;
};

float pointwise(const PointwiseOperation& op, float x, float b, float selector) {
  switch (op.mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_MAX:
      return std::fmax(x, b);
    case CUDNN_POINTWISE_MIN:
      return std::fmin(x, b);
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_RELU_FWD:
      return x > 0 || (op.keeps_nan && std::isnan(x)) ? x : 0.F;
    case CUDNN_POINTWISE_CMP_EQ:
      return x == b ? 1.F : 0.F;
    case CUDNN_POINTWISE_CMP_GT:
      return x > b ? 1.F : 0.F;
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b ? 1.F : 0.F;
    case CUDNN_POINTWISE_CMP_LT:
      return x < b ? 1.F : 0.F;
    case CUDNN_POINTWISE_CMP_LE:
      return x <= b ? 1.F : 0.F;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return selector != 0 ? x : b;
    default:
      return x;
  }
}

// Runs a graph, and keeps the values of its tensors till the end.
class GraphRun {
 public:
  explicit GraphRun(const TensorBindings& bindings) : bindings_{bindings} {}

  void add(const CudnnOperation& operation) {
    Values values = std::visit([this](const auto& op) { return result(op); }, operation);
    const CudnnTensor& output = output_of(operation);
    if (output.type == CUDNN_DATA_BFLOAT16) {
      for (float& value : values) value = from_bf16(to_bf16(value));
    }
    values_.insert_or_assign(output.id, std::move(values));
  }

  void write(const CudnnTensor& tensor) const {
    store(tensor, values_.at(tensor.id), bindings_.memory.at(tensor.id));
  }

 private:
  const Values& of(const CudnnTensor& tensor) {
    const auto found = values_.find(tensor.id);
    if (found != values_.end()) return found->second;
    Values values = tensor.is_by_value ? Values{bindings_.numbers.at(tensor.id)}
                                       : load(tensor, bindings_.memory.at(tensor.id));
    return values_.emplace(tensor.id, std::move(values)).first->second;
  }

  Values result(const ConvolutionOperation& op) {
    const std::vector<CudnnTensor> inputs = op.inputs();
    Values values = Convolution{op}.run(of(inputs[0]), of(inputs[1]));
    if (op.alpha != 1) {
      for (float& value : values) value *= op.alpha;
    }
    if (op.beta != 0) {
      const CudnnTensor& output = op.output();
      const Values before = load(output, bindings_.memory.at(output.id));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += op.beta * before[i];
    }
    return values;
  }

  Values result(const PointwiseOperation& op) {
    Values values(op.y.count());
    const auto width = as_size(op.y.dims[3]);
    if (op.mode == CUDNN_POINTWISE_GEN_INDEX) {
      each_row(op.y.dims, [&](const Dims& i, std::size_t first) {
        for (std::size_t w = 0; w < width; ++w) {
          values[first + w] = static_cast<float>(*op.axis == 3 ? static_cast<std::int64_t>(w)
                                                               : i[as_size(*op.axis)]);
        }
      });
      return values;
    }
    // Tensors that the mode does not read are replaced by x.
    const CudnnTensor& tensor_b = op.b ? *op.b : op.x;
    const CudnnTensor& tensor_t = op.selector ? *op.selector : op.x;
    const Repeated x{op.x, op.y};
    const Repeated b{tensor_b, op.y};
    const Repeated t{tensor_t, op.y};
    const Values& of_x = of(op.x);
    const Values& of_b = of(tensor_b);
    const Values& of_t = of(tensor_t);
    each_row(op.y.dims, [&](const Dims& i, std::size_t first) {
      const float* const row_x = &of_x[x.row(i)];
      const float* const row_b = &of_b[b.row(i)];
      const float* const row_t = &of_t[t.row(i)];
      for (std::size_t w = 0; w < width; ++w) {
        values[first + w] = pointwise(op, op.alpha1 * row_x[w * x.step()],
                                      op.alpha2 * row_b[w * b.step()], row_t[w * t.step()]);
      }
    });
    return values;
  }

  Values result(const MatmulOperation& op) {
    const auto rows = as_size(op.c.dims[2]);
    const auto columns = as_size(op.c.dims[3]);
    const auto inner = as_size(op.a.dims[3]);
    const auto heads = as_size(op.c.dims[kHeads]);
    const auto of_head = [&](const CudnnTensor& tensor, std::size_t image, std::size_t head) {
      const auto own = as_size(tensor.dims[kHeads]);
      const auto matrix = as_size(tensor.dims[2] * tensor.dims[3]);
      return &of(tensor)[(image * own + head / (heads / own)) * matrix];
    };
    Values values(op.c.count());
    for (std::size_t image = 0; image < as_size(op.c.dims[0]); ++image) {
      for (std::size_t head = 0; head < heads; ++head) {
        add_product(rows, columns, inner, of_head(op.a, image, head), of_head(op.b, image, head),
                    &values[(image * heads + head) * rows * columns]);
      }
    }
    return values;
  }

  Values result(const ReductionOperation& op) {
    const bool adds = op.mode == CUDNN_REDUCE_TENSOR_ADD;
    Values values(op.y.count(), 0.F);
    if (!adds) std::fill(values.begin(), values.end(), kMinusInfinity);
    const Repeated y{op.y, op.x};
    const Values& of_x = of(op.x);
    each_row(op.x.dims, [&](const Dims& i, std::size_t first) {
      float* const to = &values[y.row(i)];
      for (std::size_t w = 0; w < as_size(op.x.dims[3]); ++w) {
        float& sum = to[w * y.step()];
        const float value = of_x[first + w];
        sum = adds ? sum + value : std::fmax(sum, value);
      }
    });
    return values;
  }

  Values result(const ReshapeOperation& op) {
    const std::size_t size = std::max(op.x.extent() / element_bytes(op.x.type),
                                      op.y.extent() / element_bytes(op.y.type));
    Values memory(size, std::numeric_limits<float>::quiet_NaN());
    const Values& of_x = of(op.x);
    each_place(op.x, [&](std::size_t i, std::size_t at) { memory[at] = of_x[i]; });
    Values values(op.y.count());
    each_place(op.y, [&](std::size_t i, std::size_t at) { values[i] = memory[at]; });
    return values;
  }

  const TensorBindings& bindings_;
  std::map<std::int64_t, Values> values_;
};

// Lane is a vector of floats, or a float. Vector extensions keep the order of each element's sum,
// so that all lanes give the same bits.
using FourFloats [[gnu::vector_size(16)]] = float;
using EightFloats [[gnu::vector_size(32)]] = float;

// Products are added in this many steps before sums return to memory, which keeps a tile of b in
// the first cache.
constexpr std::size_t kInnerBlock = 128;

constexpr std::size_t kFloatBytes = 4;

struct Product {
  std::size_t rows, columns, inner;
  const float* a;
  const float* b;
  float* c;
};

// Adds steps [begin, end) of the inner dimension to kRows x (kLanes lanes) elements of c.
template <class Lane, std::size_t kRows, std::size_t kLanes>
[[gnu::always_inline]] inline void add_tile(const Product& p, std::size_t row, std::size_t column,
                                            std::size_t begin, std::size_t end) {
  constexpr std::size_t kWidth = sizeof(Lane) / kFloatBytes;
  Lane sums[kRows][kLanes];  // NOLINT(modernize-avoid-c-arrays): stays in registers
  float* const c = p.c + row * p.columns + column;
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      std::memcpy(&sums[i][j], c + i * p.columns + j * kWidth, sizeof(Lane));
    }
  }
  for (std::size_t k = begin; k < end; ++k) {
    const float* const b = p.b + k * p.columns + column;
    for (std::size_t j = 0; j < kLanes; ++j) {
      Lane factor;
      std::memcpy(&factor, b + j * kWidth, sizeof(Lane));
      for (std::size_t i = 0; i < kRows; ++i) {
        sums[i][j] += p.a[(row + i) * p.inner + k] * factor;
      }
    }
  }
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      std::memcpy(c + i * p.columns + j * kWidth, &sums[i][j], sizeof(Lane));
    }
  }
}

// Adds all rows of the columns [column, column + kLanes lanes).
template <class Lane, std::size_t kLanes>
[[gnu::always_inline]] inline void add_columns(const Product& p, std::size_t column,
                                               std::size_t begin, std::size_t end) {
  constexpr std::size_t kRows = 4;
  std::size_t row = 0;
  for (; row + kRows <= p.rows; row += kRows) {
    add_tile<Lane, kRows, kLanes>(p, row, column, begin, end);
  }
  for (; row < p.rows; ++row) add_tile<Lane, 1, kLanes>(p, row, column, begin, end);
}

template <class Lane>
[[gnu::always_inline]] inline void add_blocks(const Product& p) {
  constexpr std::size_t kTile = 2 * sizeof(Lane) / kFloatBytes;
  for (std::size_t begin = 0; begin < p.inner; begin += kInnerBlock) {
    const std::size_t end = std::min(begin + kInnerBlock, p.inner);
    std::size_t column = 0;
    for (; column + kTile <= p.columns; column += kTile) {
      add_columns<Lane, 2>(p, column, begin, end);
    }
    for (; column + 4 <= p.columns; column += 4) add_columns<FourFloats, 1>(p, column, begin, end);
    for (; column < p.columns; ++column) add_columns<float, 1>(p, column, begin, end);
  }
}

#ifdef __x86_64__
// AVX2 alone has no fused multiply-add, so that its bits are those of the other.
[[gnu::target("avx2")]] void add_with_avx2(const Product& p) { add_blocks<EightFloats>(p); }
#endif

}  // namespace

void check(const CudnnOperation& operation) {
  std::visit([](const auto& op) { check_fit(op); }, operation);
  require(!output_of(operation).is_by_value, "an operation writes a tensor that is by value");
}

OperationGraph::OperationGraph(std::vector<CudnnOperation> operations)
    : operations_{std::move(operations)} {
  require(!operations_.empty(), "a graph has no operations");
  for (const CudnnOperation& operation : operations_) {
    for (const CudnnTensor& tensor : inputs_of(operation)) add(tensor);
    const CudnnTensor& output = output_of(operation);
    add(output);
    require(written_.insert(output.id).second, "two operations write " + describe(output));
  }
  for (const auto& [id, tensor] : tensors_) {
    require(!tensor.is_virtual || is_written(id), "no operation writes " + describe(tensor));
  }
  sort();
}

void OperationGraph::add(const CudnnTensor& tensor) {
  const auto [found, is_new] = tensors_.emplace(tensor.id, tensor);
  require(is_new || found->second == tensor,
          describe(tensor) + " has the id of another, " + describe(found->second));
}

void OperationGraph::sort() {
  std::vector<CudnnOperation> sorted;
  std::set<std::int64_t> ready;
  while (!operations_.empty()) {
    const auto next = std::find_if(operations_.begin(), operations_.end(), [&](const auto& op) {
      const std::vector<CudnnTensor> inputs = inputs_of(op);
      return std::all_of(inputs.begin(), inputs.end(), [&](const CudnnTensor& tensor) {
        return !is_written(tensor.id) || ready.contains(tensor.id);
      });
    });
    require(next != operations_.end(), "a graph has a cycle");
    ready.insert(output_of(*next).id);
    sorted.push_back(*next);
    operations_.erase(next);
  }
  operations_ = std::move(sorted);
}

void compute(const OperationGraph& graph, const TensorBindings& bindings) {
  GraphRun run{bindings};
  for (const CudnnOperation& operation : graph.operations()) run.add(operation);
  for (const CudnnOperation& operation : graph.operations()) {
    if (!output_of(operation).is_virtual) run.write(output_of(operation));
  }
}

void add_product(std::size_t rows, std::size_t columns, std::size_t inner, const float* a,
                 const float* b, float* c) {
  const Product product{.rows = rows, .columns = columns, .inner = inner, .a = a, .b = b, .c = c};
#ifdef __x86_64__
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return add_with_avx2(product);
#endif
  add_blocks<FourFloats>(product);
}

}  // namespace spillway::emulated

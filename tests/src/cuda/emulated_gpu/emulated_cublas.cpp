// A stand-in for the functions of cuBLASLt that the plug-in calls. Each algorithm of a product
// gives the same bits; algorithms differ in their workspaces, and one splits sums.

#include <cublasLt.h>

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/src/cuda/emulated_gpu/emulated_gpu.h"

namespace spillway::emulated {
namespace {

struct MatmulSettings {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transposes_a = CUBLAS_OP_N;
  cublasOperation_t transposes_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

// A column-major matrix.
struct MatrixLayout {
  cudaDataType_t type;
  std::size_t rows;
  std::size_t columns;
  std::size_t stride;  // elements between columns

  [[nodiscard]] std::size_t element() const { return type == CUDA_R_16BF ? 2 : 4; }
  [[nodiscard]] std::size_t extent() const { return ((columns - 1) * stride + rows) * element(); }

  friend bool operator==(const MatrixLayout&, const MatrixLayout&) = default;
};

// The caller's conditions for an algorithm.
struct Preference {
  std::uint64_t max_workspace = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::array<std::uint32_t, 4> alignments{256, 256, 256, 256};  // of A, B, C and D
};

// D = alpha op(A) op(B) + beta C.
struct ProductShape {
  MatmulSettings settings;
  MatrixLayout a, b, c, d;

  [[nodiscard]] std::size_t inner() const {
    return settings.transposes_a == CUBLAS_OP_N ? a.columns : a.rows;
  }
  [[nodiscard]] bool has_bias() const { return settings.epilogue == CUBLASLT_EPILOGUE_BIAS; }
};

// Returns a number that differs between products for which algorithms are not interchangeable.
std::uint64_t fingerprint(const ProductShape& shape) {
  constexpr std::uint64_t kPrime = 1099511628211;
  std::uint64_t hash = 14695981039346656037ULL;
  const auto add = [&](std::uint64_t value) { hash = (hash ^ value) * kPrime; };
  for (const MatrixLayout* matrix : {&shape.a, &shape.b, &shape.c, &shape.d}) {
    add(static_cast<std::uint64_t>(matrix->type));
    for (const std::size_t size : {matrix->rows, matrix->columns, matrix->stride}) add(size);
  }
  for (const int setting :
       {static_cast<int>(shape.settings.compute), static_cast<int>(shape.settings.transposes_a),
        static_cast<int>(shape.settings.transposes_b), static_cast<int>(shape.settings.epilogue)}) {
    add(static_cast<std::uint64_t>(setting));
  }
  return hash;
}

struct Algorithm {
  const char* name;
  std::uint64_t workspace;
  bool splits_sums;
};

// By expected speed. The first is used only where sums may be split between blocks.
constexpr std::array<Algorithm, 3> kAlgorithms{{{"split sums", 1U << 20U, true},
                                                {"with workspace", 12345, false},
                                                {"without workspace", 0, false}}};

// The content of a cublasLtMatmulAlgo_t.
struct ChosenAlgorithm {
  std::uint64_t mark;
  std::uint64_t index;
  std::uint64_t fingerprint;
  std::array<std::uint32_t, 4> alignments;
};
constexpr std::uint64_t kMark = 0x5350494C4C574159;
static_assert(sizeof(ChosenAlgorithm) <= sizeof(cublasLtMatmulAlgo_t));

// An error of the caller.
class CublasMistake : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

void demand(bool holds, const std::string& sentence) {
  if (!holds) throw CublasMistake{sentence};
}

// The objects of one kind that the caller holds.
template <class Handle, class T>
class Objects {
 public:
  explicit Objects(std::string kind) : kind_{std::move(kind)} {}

  [[nodiscard]] Handle add(const T& object) {
    const std::lock_guard lock{mutex_};
    // The address is never used again, so that what is destroyed cannot be mistaken.
    void* const key = &keys_.emplace_back();
    objects_.emplace(key, object);
    return static_cast<Handle>(key);
  }
  void erase(Handle handle) {
    const std::lock_guard lock{mutex_};
    demand(objects_.erase(handle) > 0, kind_ + " is destroyed that does not exist");
  }
  [[nodiscard]] T get(Handle handle) {
    const std::lock_guard lock{mutex_};
    return found(handle);
  }
  // Calls change(object).
  template <class Change>
  void update(Handle handle, const Change& change) {
    const std::lock_guard lock{mutex_};
    change(found(handle));
  }

 private:
  T& found(Handle handle) {
    const auto found = objects_.find(handle);
    demand(found != objects_.end(), kind_ + " is used that does not exist");
    return found->second;
  }

  std::string kind_;
  std::mutex mutex_;
  std::deque<char> keys_;
  std::map<const void*, T> objects_;
};

struct CublasObjects {
  Objects<cublasLtHandle_t, char> handles{"a handle"};
  Objects<cublasLtMatmulDesc_t, MatmulSettings> settings{"a matmul descriptor"};
  Objects<cublasLtMatrixLayout_t, MatrixLayout> layouts{"a matrix layout"};
  Objects<cublasLtMatmulPreference_t, Preference> preferences{"a preference"};
};

CublasObjects& objects() {
  static CublasObjects& all = *new CublasObjects;  // outlives destructors of static objects
  return all;
}

template <class Body>
cublasStatus_t run_cublas_body(const char* name, const Body& body) {
  try {
    return body();
  } catch (const CublasMistake& error) {
    report_mistake(std::string{name} + ": " + error.what());
    return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t status_of(int error, cublasStatus_t otherwise) {
  return error == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED : otherwise;
}

// Runs a function of the library. `failure` is its status if the device is lost.
template <class Body>
cublasStatus_t serve_cublas(const char* name, const Body& body,
                            cublasStatus_t failure = CUBLAS_STATUS_INTERNAL_ERROR) {
  if (const int error = begin_call(name); error != 0) return status_of(error, failure);
  return run_cublas_body(name, body);
}

// Runs a function that releases something, also if it then returns an error.
template <class Handle, class T>
cublasStatus_t release_cublas(const char* name, Objects<Handle, T>& all, Handle handle) {
  const int error = begin_call(name);
  const cublasStatus_t status = run_cublas_body(name, [&] {
    all.erase(handle);
    return CUBLAS_STATUS_SUCCESS;
  });
  return error == 0 ? status : status_of(error, CUBLAS_STATUS_INTERNAL_ERROR);
}

template <class T>
void read_attribute(T& to, const void* value, std::size_t size) {
  demand(value != nullptr && size == sizeof(T), "an attribute has another size");
  std::memcpy(&to, value, sizeof(T));
}

ProductShape shape_of(cublasLtMatmulDesc_t settings, cublasLtMatrixLayout_t a,
                      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                      cublasLtMatrixLayout_t d) {
  CublasObjects& all = objects();
  const ProductShape shape{.settings = all.settings.get(settings),
                           .a = all.layouts.get(a),
                           .b = all.layouts.get(b),
                           .c = all.layouts.get(c),
                           .d = all.layouts.get(d)};
  const auto size = [](const MatrixLayout& matrix, cublasOperation_t operation) {
    return operation == CUBLAS_OP_N ? std::pair{matrix.rows, matrix.columns}
                                    : std::pair{matrix.columns, matrix.rows};
  };
  const auto [rows, inner] = size(shape.a, shape.settings.transposes_a);
  const auto [inner_b, columns] = size(shape.b, shape.settings.transposes_b);
  demand(inner == inner_b, "A and B have two inner sizes");
  demand(shape.d.rows == rows && shape.d.columns == columns, "D has a size that does not fit");
  demand(shape.c.rows == rows && shape.c.columns == columns, "C has a size that does not fit");
  demand(shape.c.type == shape.d.type, "C and D have two types");
  return shape;
}

// Returns false for types that cuBLASLt cannot combine.
bool is_supported(const ProductShape& shape) {
  const bool is_bf16 = shape.a.type == CUDA_R_16BF;
  const bool has_types =
      shape.a.type == shape.b.type && (shape.d.type == CUDA_R_32F || shape.d.type == shape.a.type);
  const cublasComputeType_t compute = shape.settings.compute;
  const bool has_compute =
      compute == CUBLAS_COMPUTE_32F || (compute == CUBLAS_COMPUTE_32F_FAST_TF32 && !is_bf16);
  const bool has_epilogue =
      shape.has_bias() || shape.settings.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
  return has_types && has_compute && has_epilogue && shape.settings.scale == CUDA_R_32F;
}

float element_of(const MatrixLayout& matrix, const void* memory, std::size_t place) {
  return matrix.type == CUDA_R_16BF ? from_bf16(static_cast<const std::uint16_t*>(memory)[place])
                                    : static_cast<const float*>(memory)[place];
}

void set_element(const MatrixLayout& matrix, void* memory, std::size_t place, float value) {
  if (matrix.type == CUDA_R_16BF) {
    static_cast<std::uint16_t*>(memory)[place] = to_bf16(value);
  } else {
    static_cast<float*>(memory)[place] = value;
  }
}

// Returns op(matrix) transposed, as a dense row-major matrix: its columns one after the other.
std::vector<float> columns_of(const MatrixLayout& matrix, cublasOperation_t operation,
                              const void* memory) {
  std::vector<float> values(matrix.rows * matrix.columns);
  for (std::size_t column = 0; column < matrix.columns; ++column) {
    for (std::size_t row = 0; row < matrix.rows; ++row) {
      const std::size_t to =
          operation == CUBLAS_OP_N ? column * matrix.rows + row : row * matrix.columns + column;
      values[to] = element_of(matrix, memory, column * matrix.stride + row);
    }
  }
  return values;
}

// A call of cublasLtMatmul, independent of descriptors and of the caller's memory.
struct ProductCall {
  ProductShape shape;
  const void* a;
  const void* b;
  const void* c;
  void* d;
  float alpha;
  float beta;
  void* workspace;
  std::size_t workspace_bytes;

  void compute() const;
  // Returns what the call reads and writes; C comes last, if it is read.
  [[nodiscard]] std::vector<Access> accesses() const;
  void check_memory(const std::array<std::uint32_t, 4>& alignments) const;
};

void ProductCall::compute() const {
  if (workspace_bytes > 0) poison(workspace, workspace_bytes);
  const MatrixLayout& result = shape.d;
  std::vector<float> sums(result.rows * result.columns);
  // Row-major, the product is D^T = op(B)^T op(A)^T.
  add_product(result.columns, result.rows, shape.inner(),
              columns_of(shape.b, shape.settings.transposes_b, b).data(),
              columns_of(shape.a, shape.settings.transposes_a, a).data(), sums.data());
  for (std::size_t column = 0; column < result.columns; ++column) {
    for (std::size_t row = 0; row < result.rows; ++row) {
      float value = alpha * sums[column * result.rows + row];
      if (beta != 0) value += beta * element_of(shape.c, c, column * shape.c.stride + row);
      if (shape.has_bias()) value += element_of(result, shape.settings.bias, row);
      set_element(result, d, column * result.stride + row, value);
    }
  }
  if (workspace_bytes > 0) poison(workspace, workspace_bytes);
}

std::vector<Access> ProductCall::accesses() const {
  std::vector<Access> all{
      {a, shape.a.extent(), false}, {b, shape.b.extent(), false}, {d, shape.d.extent(), true}};
  if (shape.has_bias()) {
    all.push_back({shape.settings.bias, shape.d.rows * shape.d.element(), false});
  }
  if (workspace_bytes > 0) all.push_back({workspace, workspace_bytes, true});
  if (beta != 0) all.push_back({c, shape.c.extent(), false});
  return all;
}

bool overlap(const Access& a, const Access& b) {
  const auto* const begin_a = static_cast<const char*>(a.begin);
  const auto* const begin_b = static_cast<const char*>(b.begin);
  return begin_a < begin_b + b.size && begin_b < begin_a + a.size;
}

void demand_device_memory(const std::string& name, const void* begin, std::size_t size,
                          std::size_t alignment) {
  demand(reinterpret_cast<std::uintptr_t>(begin) % alignment == 0,
         name + " is not aligned to " + std::to_string(alignment) + " bytes");
  demand(is_device_memory(begin, size), name + " does not lie in one block of device memory");
}

void ProductCall::check_memory(const std::array<std::uint32_t, 4>& alignments) const {
  demand_device_memory("A", a, shape.a.extent(), alignments[0]);
  demand_device_memory("B", b, shape.b.extent(), alignments[1]);
  if (beta != 0) demand_device_memory("C", c, shape.c.extent(), alignments[2]);
  demand_device_memory("D", d, shape.d.extent(), alignments[3]);
  if (shape.has_bias()) {
    constexpr std::size_t kBiasAlignment = 16;
    demand_device_memory("the bias", shape.settings.bias, shape.d.rows * shape.d.element(),
                         kBiasAlignment);
  }
  if (workspace_bytes > 0) {
    constexpr std::size_t kWorkspaceAlignment = 256;
    demand_device_memory("the workspace", workspace, workspace_bytes, kWorkspaceAlignment);
  }
  if (beta != 0) {
    const bool is_apart = !overlap({c, shape.c.extent()}, {d, shape.d.extent()});
    demand(is_apart || (c == d && shape.c == shape.d), "D lies over C, but not in its place");
  }
  // Only C may lie where D does, in its place.
  const std::vector<Access> all = accesses();
  for (const Access& written : all) {
    for (const Access& other : all) {
      const bool is_kept = written.begin == d && &other == &all.back() && beta != 0;
      if (!written.writes || &written == &other || is_kept) continue;
      demand(!overlap(written, other), "the result or the workspace lies over another operand");
    }
  }
}

// Returns the algorithm that the heuristics found for this shape.
ChosenAlgorithm chosen_for(const ProductShape& shape, const cublasLtMatmulAlgo_t* algorithm) {
  demand(algorithm != nullptr, "there is no algorithm");
  ChosenAlgorithm chosen{};
  std::memcpy(&chosen, algorithm, sizeof chosen);
  demand(chosen.mark == kMark && chosen.index < kAlgorithms.size(),
         "the algorithm does not come from the heuristics");
  demand(chosen.fingerprint == fingerprint(shape), "the algorithm was found for another product");
  return chosen;
}

}  // namespace
}  // namespace spillway::emulated

using namespace spillway::emulated;

extern "C" {

// Neither fails nor uses the device.
const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "an unknown status of cuBLAS";
  }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return serve_cublas(
      "cublasLtCreate",
      [&] {
        demand(handle != nullptr, "there is no place for the handle");
        *handle = objects().handles.add({});
        return CUBLAS_STATUS_SUCCESS;
      },
      CUBLAS_STATUS_NOT_INITIALIZED);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return release_cublas("cublasLtDestroy", objects().handles, handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor,
                                        cublasComputeType_t compute, cudaDataType_t scale) {
  return serve_cublas("cublasLtMatmulDescCreate", [&] {
    demand(descriptor != nullptr, "there is no place for the descriptor");
    *descriptor = objects().settings.add({.compute = compute, .scale = scale});
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) {
  return release_cublas("cublasLtMatmulDescDestroy", objects().settings, descriptor);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, size_t size) {
  return serve_cublas("cublasLtMatmulDescSetAttribute", [&] {
    objects().settings.update(descriptor, [&](MatmulSettings& settings) {
      switch (name) {
        case CUBLASLT_MATMUL_DESC_TRANSA:
          return read_attribute(settings.transposes_a, value, size);
        case CUBLASLT_MATMUL_DESC_TRANSB:
          return read_attribute(settings.transposes_b, value, size);
        case CUBLASLT_MATMUL_DESC_EPILOGUE:
          return read_attribute(settings.epilogue, value, size);
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
          return read_attribute(settings.bias, value, size);
        default:
          throw CublasMistake{"an attribute of a product is not emulated"};
      }
    });
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  return serve_cublas("cublasLtMatrixLayoutCreate", [&] {
    demand(layout != nullptr, "there is no place for the layout");
    demand(rows > 0 && columns > 0, "a matrix has no elements");
    demand(stride > 0 && static_cast<std::uint64_t>(stride) >= rows,
           "a matrix has columns that overlap");
    if (type != CUDA_R_32F && type != CUDA_R_16BF) return CUBLAS_STATUS_NOT_SUPPORTED;
    *layout = objects().layouts.add({.type = type,
                                     .rows = rows,
                                     .columns = columns,
                                     .stride = static_cast<std::size_t>(stride)});
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return release_cublas("cublasLtMatrixLayoutDestroy", objects().layouts, layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return serve_cublas("cublasLtMatmulPreferenceCreate", [&] {
    demand(preference != nullptr, "there is no place for the preference");
    *preference = objects().preferences.add({});
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return release_cublas("cublasLtMatmulPreferenceDestroy", objects().preferences, preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, size_t size) {
  return serve_cublas("cublasLtMatmulPreferenceSetAttribute", [&] {
    objects().preferences.update(preference, [&](Preference& preferred) {
      switch (name) {
        case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
          return read_attribute(preferred.max_workspace, value, size);
        case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
          return read_attribute(preferred.reductions, value, size);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: {
          std::uint32_t& alignment = preferred.alignments.at(
              static_cast<std::size_t>(name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
          read_attribute(alignment, value, size);
          return demand(alignment > 0, "an alignment of zero bytes is preferred");
        }
        default:
          throw CublasMistake{"an attribute of a preference is not emulated"};
      }
    });
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t settings,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int room,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  return serve_cublas("cublasLtMatmulAlgoGetHeuristic", [&] {
    (void)objects().handles.get(handle);
    demand(room > 0 && results != nullptr && count != nullptr, "there is no place for results");
    *count = 0;
    const ProductShape shape = shape_of(settings, a, b, c, d);
    const Preference preferred = objects().preferences.get(preference);
    if (!is_supported(shape)) return CUBLAS_STATUS_NOT_SUPPORTED;
    for (std::size_t i = 0; i < kAlgorithms.size() && *count < room; ++i) {
      const Algorithm& algorithm = kAlgorithms[i];
      const bool may_split = (preferred.reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
      if (algorithm.workspace > preferred.max_workspace || (algorithm.splits_sums && !may_split)) {
        continue;
      }
      const ChosenAlgorithm chosen{.mark = kMark,
                                   .index = i,
                                   .fingerprint = fingerprint(shape),
                                   .alignments = preferred.alignments};
      cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
      result = {};
      std::memcpy(&result.algo, &chosen, sizeof chosen);
      result.workspaceSize = algorithm.workspace;
      result.state = CUBLAS_STATUS_SUCCESS;
      result.wavesCount = 1;
    }
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t name,
                                                    void* value, size_t size, size_t* written) {
  return serve_cublas("cublasLtMatmulAlgoConfigGetAttribute", [&] {
    ChosenAlgorithm chosen{};
    std::memcpy(&chosen, algorithm, sizeof chosen);
    demand(chosen.mark == kMark, "an algorithm that no heuristics returned");
    const Algorithm& described = kAlgorithms.at(chosen.index);
    std::uint32_t found = 0;
    switch (name) {
      case CUBLASLT_ALGO_CONFIG_ID:
        found = static_cast<std::uint32_t>(chosen.index);
        break;
      case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
        found = described.splits_sums ? 2 : 1;
        break;
      case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
        found = described.splits_sums ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : 0;
        break;
      default:
        break;
    }
    demand(size <= sizeof found, "an attribute of an algorithm is smaller than its place");
    std::memcpy(value, &found, size);
    if (written != nullptr) *written = size;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t settings,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t layout_a,
                              const void* b, cublasLtMatrixLayout_t layout_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  return serve_cublas(
      "cublasLtMatmul",
      [&] {
        (void)objects().handles.get(handle);
        const ProductShape shape = shape_of(settings, layout_a, layout_b, layout_c, layout_d);
        if (!is_supported(shape)) return CUBLAS_STATUS_NOT_SUPPORTED;
        const ChosenAlgorithm chosen = chosen_for(shape, algorithm);
        const Algorithm& used = kAlgorithms.at(chosen.index);
        demand(used.workspace <= workspace_bytes, "the workspace is too small for the algorithm");
        demand(alpha != nullptr && beta != nullptr, "a factor has the null address");
        demand(!is_device_memory(alpha, sizeof(float)) && !is_device_memory(beta, sizeof(float)),
               "a factor lies in device memory");
        ProductCall call{.shape = shape,
                         .a = a,
                         .b = b,
                         .c = c,
                         .d = d,
                         .alpha = *static_cast<const float*>(alpha),
                         .beta = *static_cast<const float*>(beta),
                         .workspace = workspace,
                         .workspace_bytes = workspace_bytes};
        call.check_memory(chosen.alignments);
        const int error = enqueue(stream, Work{.name = std::string{"cuBLASLt product "} + used.name,
                                               .accesses = call.accesses(),
                                               .compute = [call] { call.compute(); }});
        return error == 0 ? CUBLAS_STATUS_SUCCESS
                          : status_of(error, CUBLAS_STATUS_EXECUTION_FAILED);
      },
      CUBLAS_STATUS_EXECUTION_FAILED);
}

}  // extern "C"

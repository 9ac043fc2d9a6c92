#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "um/error.h"

namespace spillway::cuda {

/// An error of a cuDNN call. `what()` is cuDNN's text; callers that know the operation add its name
/// with naming().
class CudnnError : public um::Error {
 public:
  CudnnError(cudnnStatus_t status, const std::string& text) : um::Error{text}, status_{status} {}
  /// Returns true if cuDNN does not support the request at all.
  [[nodiscard]] bool is_unsupported() const {
    return status_ >= CUDNN_STATUS_NOT_SUPPORTED && status_ < CUDNN_STATUS_INTERNAL_ERROR;
  }

 private:
  cudnnStatus_t status_;
};

/// Throws: CudnnError with cudnnGetLastErrorString's text, unless `status` is success.
void check_cudnn(cudnnStatus_t status);

/// Calls `function` and turns a CudnnError into an um::Error with the operation's name, which
/// `purpose()` returns: "cuDNN cannot run PURPOSE: TEXT".
template <class Purpose, class Function>
auto naming(const Purpose& purpose, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const CudnnError& error) {
    throw um::Error{"cuDNN cannot run " + purpose() + ": " + error.what()};
  }
}

/// cuDNN's attribute type for a C++ type.
template <class T>
inline constexpr cudnnBackendAttributeType_t kAttributeType = CUDNN_TYPE_INT64;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<char> = CUDNN_TYPE_CHAR;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<void*> = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnConvolutionMode_t> =
    CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnPointwiseMode_t> =
    CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnReduceTensorOp_t> =
    CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnNanPropagation_t> =
    CUDNN_TYPE_NAN_PROPOGATION;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnBackendHeurMode_t> =
    CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnBackendKnobType_t> =
    CUDNN_TYPE_KNOB_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnBackendNumericalNote_t> =
    CUDNN_TYPE_NUMERICAL_NOTE;
template <>
inline constexpr cudnnBackendAttributeType_t kAttributeType<cudnnBackendBehaviorNote_t> =
    CUDNN_TYPE_BEHAVIOR_NOTE;

/// Owns one descriptor of cuDNN's backend API. It must outlive all descriptors that refer to it.
/// All members throw CudnnError if cuDNN refuses.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : descriptor_{std::exchange(other.descriptor_, nullptr)} {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  ~CudnnDescriptor();

  template <class T>
  void set(cudnnBackendAttributeName_t name, const T& value) {
    set(name, kAttributeType<T>, 1, &value);
  }
  template <class T>
  void set_all(cudnnBackendAttributeName_t name, std::span<const T> values) {
    set(name, kAttributeType<T>, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  void set_all(cudnnBackendAttributeName_t name, std::span<const CudnnDescriptor> values);

  /// Must be called exactly once, after the last set() and before the first use.
  void finalize();

  template <class T>
  [[nodiscard]] T get(cudnnBackendAttributeName_t name) const {
    T value{};
    get(name, kAttributeType<T>, 1, &value);
    return value;
  }
  /// Returns at most 64 values, more than any attribute used here has.
  template <class T>
  [[nodiscard]] std::vector<T> get_all(cudnnBackendAttributeName_t name) const {
    std::vector<T> values(64);
    values.resize(get(name, kAttributeType<T>, values.size(), values.data()));
    return values;
  }
  /// Return an attribute that is a descriptor of type `type`, or a list of at most `max` of them.
  [[nodiscard]] CudnnDescriptor get_descriptor(cudnnBackendAttributeName_t name,
                                               cudnnBackendDescriptorType_t type) const;
  [[nodiscard]] std::vector<CudnnDescriptor> get_descriptors(cudnnBackendAttributeName_t name,
                                                             cudnnBackendDescriptorType_t type,
                                                             std::size_t max) const;

  [[nodiscard]] cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  // Returns the number of values.
  std::size_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::size_t room, void* values) const;

  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// An error of cuDNN or cuBLAS. `what()` names the library, its text and the source line.
class LibraryError : public um::Error {
 public:
  LibraryError(const std::string& text, um::Caller where);
};

/// Throws: LibraryError with the caller's file and line, unless `status` is success.
void check(cudnnStatus_t status, um::Caller where = um::Caller::here());
void check(cublasStatus_t status, um::Caller where = um::Caller::here());

}  // namespace spillway::cuda

#include "src/cuda/cudnn/cudnn_descriptor.h"

#include <algorithm>

namespace spillway::cuda {

void check_cudnn(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  text.back() = '\0';
  std::string sentence = cudnnGetErrorString(status);
  if (text.front() != '\0') sentence += ": " + std::string{text.data()};
  std::replace(sentence.begin(), sentence.end(), '\n', ' ');
  throw CudnnError{status, sentence};
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  check_cudnn(cudnnBackendCreateDescriptor(type, &descriptor_));
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) (void)cudnnBackendDestroyDescriptor(descriptor_);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
}

void CudnnDescriptor::set_all(cudnnBackendAttributeName_t name,
                              std::span<const CudnnDescriptor> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  raw.reserve(values.size());
  for (const CudnnDescriptor& value : values) raw.push_back(value.descriptor_);
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()), raw.data());
}

void CudnnDescriptor::finalize() { check_cudnn(cudnnBackendFinalize(descriptor_)); }

CudnnDescriptor CudnnDescriptor::get_descriptor(cudnnBackendAttributeName_t name,
                                                cudnnBackendDescriptorType_t type) const {
  CudnnDescriptor value{type};
  get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  return value;
}

std::vector<CudnnDescriptor> CudnnDescriptor::get_descriptors(cudnnBackendAttributeName_t name,
                                                              cudnnBackendDescriptorType_t type,
                                                              std::size_t max) const {
  std::vector<CudnnDescriptor> values;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::size_t i = 0; i < max; ++i) raw.push_back(values.emplace_back(type).descriptor_);
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(
                                    get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, max, raw.data())),
               values.end());
  return values;
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::int64_t count, const void* values) {
  check_cudnn(cudnnBackendSetAttribute(descriptor_, name, type, count, values));
}

std::size_t CudnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                 std::size_t room, void* values) const {
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(descriptor_, name, type, static_cast<std::int64_t>(room),
                                       &count, values));
  return std::min(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), room);
}

LibraryError::LibraryError(const std::string& text, um::Caller where)
    : um::Error{text + " (at " + where.file + ":" + std::to_string(where.line) + ")"} {}

void check(cudnnStatus_t status, um::Caller where) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw LibraryError{std::string{"cuDNN: "} + cudnnGetErrorString(status), where};
}

void check(cublasStatus_t status, um::Caller where) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw LibraryError{std::string{"cuBLASLt: "} + cublasLtGetStatusString(status), where};
}

}  // namespace spillway::cuda

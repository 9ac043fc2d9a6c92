// A stand-in for the functions of cuDNN 9's backend API that the plug-in calls. Each engine of a
// graph gives the same bits; engines differ in their workspaces and notes, as cuDNN's do.

#include <cudnn.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/src/cuda/emulated_gpu/cudnn_descriptors.h"
#include "tests/src/cuda/emulated_gpu/cudnn_operations.h"
#include "tests/src/cuda/emulated_gpu/emulated_gpu.h"

namespace spillway::emulated {
namespace {

// Everything that callers hold.
class Library {
 public:
  [[nodiscard]] static Library& get() {
    static Library& library = *new Library;  // outlives destructors of static objects
    return library;
  }

  std::mutex mutex;

  [[nodiscard]] cudnnHandle_t add_handle() {
    void* const key = new_key();
    streams_[key] = nullptr;
    return static_cast<cudnnHandle_t>(key);
  }
  [[nodiscard]] CUstream_st*& stream_of(const void* handle) {
    const auto found = streams_.find(handle);
    require(found != streams_.end(), "a handle is used that does not exist");
    return found->second;
  }
  void erase(cudnnHandle_t handle) {
    require(streams_.erase(handle) > 0, "a handle is destroyed that does not exist");
  }

  [[nodiscard]] cudnnBackendDescriptor_t add(cudnnBackendDescriptorType_t type) {
    void* const key = new_key();
    descriptors_[key] = std::make_shared<Descriptor>(Descriptor{.type = type});
    return key;
  }
  [[nodiscard]] const std::shared_ptr<Descriptor>& find(const void* descriptor) {
    const auto found = descriptors_.find(descriptor);
    require(found != descriptors_.end(), "a descriptor is used that does not exist");
    return found->second;
  }
  [[nodiscard]] const std::shared_ptr<Descriptor>& find_final(const void* descriptor) {
    const std::shared_ptr<Descriptor>& found = find(descriptor);
    require(found->is_final, text_of(found->type) + " is used before it is finalized");
    return found;
  }
  void erase(cudnnBackendDescriptor_t descriptor) {
    find(descriptor)->is_destroyed = true;
    descriptors_.erase(descriptor);
  }

 private:
  // Returns an address that is never used again, so that what is destroyed cannot be mistaken.
  void* new_key() { return &keys_.emplace_back(); }

  std::deque<char> keys_;
  std::map<const void*, CUstream_st*> streams_;
  std::map<const void*, std::shared_ptr<Descriptor>> descriptors_;
};

std::string& last_error() {
  thread_local std::string text;
  return text;
}

cudnnStatus_t refuse(cudnnStatus_t status, const std::string& sentence) {
  last_error() = sentence;
  return status;
}

// Returns the status for an error of the device, which is `otherwise` unless memory is short.
cudnnStatus_t refuse_device(int error, const std::string& name, cudnnStatus_t otherwise) {
  return refuse(error == cudaErrorMemoryAllocation
                    ? CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                    : otherwise,
                name + " failed with CUDA's error " + std::to_string(error));
}

// Runs a function's body, and reports mistakes of the caller.
template <class Body>
cudnnStatus_t run_body(const char* name, const Body& body) {
  try {
    return body();
  } catch (const NotSupported& error) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, error.what());
  } catch (const CallerMistake& error) {
    report_mistake(std::string{name} + ": " + error.what());
    return refuse(CUDNN_STATUS_BAD_PARAM, error.what());
  }
}

// Runs a function of the library with its state locked. `failure` is its status if the device is
// lost.
template <class Body>
cudnnStatus_t serve(const char* name, const Body& body,
                    cudnnStatus_t failure = CUDNN_STATUS_INTERNAL_ERROR) {
  if (const int error = begin_call(name); error != 0) return refuse_device(error, name, failure);
  return run_body(name, [&] {
    const std::lock_guard lock{Library::get().mutex};
    body(Library::get());
    return CUDNN_STATUS_SUCCESS;
  });
}

// Runs a function that releases something, also if it then returns an error.
template <class Body>
cudnnStatus_t release(const char* name, const Body& body) {
  const int error = begin_call(name);
  const cudnnStatus_t status = run_body(name, [&] {
    const std::lock_guard lock{Library::get().mutex};
    body(Library::get());
    return CUDNN_STATUS_SUCCESS;
  });
  return error == 0 ? status : refuse_device(error, name, CUDNN_STATUS_INTERNAL_ERROR);
}

void set_attribute(Library& library, Descriptor& d, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, std::span<const char> bytes,
                   std::span<const cudnnBackendDescriptor_t> references) {
  Attribute attribute;
  attribute.bytes.assign(bytes.begin(), bytes.end());
  for (const void* each : references) {
    attribute.references.push_back(library.find_final(each));
  }
  if (type == CUDNN_TYPE_HANDLE) {
    void* handle = nullptr;
    std::memcpy(&handle, bytes.data(), sizeof handle);
    (void)library.stream_of(handle);
  }
  d.attributes[name] = std::move(attribute);
}

// The caller's place for the values of an attribute.
struct Destination {
  std::int64_t room;
  std::int64_t* count;
  void* values;
};

template <class T>
void give(const std::vector<T>& values, const Destination& to) {
  if (to.count != nullptr) *to.count = static_cast<std::int64_t>(values.size());
  const std::size_t given = std::min(values.size(), static_cast<std::size_t>(to.room));
  if (to.values != nullptr && given > 0) std::memcpy(to.values, values.data(), given * sizeof(T));
}

// Fills the descriptors that the caller has created for the values.
void give_descriptors(Library& library, const std::vector<Reference>& values,
                      const Destination& to) {
  if (to.count != nullptr) *to.count = static_cast<std::int64_t>(values.size());
  if (to.values == nullptr) return;
  const auto* const filled = static_cast<const cudnnBackendDescriptor_t*>(to.values);
  for (std::size_t i = 0; i < values.size() && i < static_cast<std::size_t>(to.room); ++i) {
    Descriptor& target = *library.find(filled[i]);
    require(target.type == values[i]->type && !target.is_final,
            "a result cannot be put into " + text_of(target.type));
    target = *values[i];
  }
}

std::vector<Reference> knobs_of(const Engine& engine) {
  std::vector<Reference> all;
  for (const Knob& knob : engine.knobs) {
    Descriptor choice{.type = CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, .is_final = true};
    choice.knob = knob;
    all.push_back(std::make_shared<const Descriptor>(std::move(choice)));
  }
  return all;
}

void get_attribute(Library& library, const Descriptor& d, cudnnBackendAttributeName_t name,
                   const Destination& to) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return give_descriptors(library, d.results, to);
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      Descriptor engine = d;
      engine.type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
      return give_descriptors(library, {std::make_shared<const Descriptor>(std::move(engine))}, to);
    }
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      return give_descriptors(library, knobs_of(*d.engine), to);
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
      return give(std::vector{d.engine->workspace}, to);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return give(std::vector{d.engine->workspace + d.engine->more_for_plan}, to);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return give(std::vector{d.engine->number}, to);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return give(d.engine->numerics, to);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return give(d.engine->behaviour, to);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      return give(std::vector{d.knob.type}, to);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      return give(std::vector{d.knob.value}, to);
    default:
      throw CallerMistake{"an attribute is asked for that is not a result"};
  }
}

// Requires that device memory is where a tensor says.
void check_memory(const CudnnTensor& tensor, const void* address) {
  const auto misplaced =
      reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(tensor.alignment);
  require(misplaced == 0,
          describe(tensor) + " is not aligned to " + std::to_string(tensor.alignment) + " bytes");
  require(is_device_memory(address, tensor.extent()),
          describe(tensor) + " does not lie in one block of device memory");
}

// Takes the addresses from a variant pack, and reads the numbers.
TensorBindings bind(const OperationGraph& graph, const Descriptor& pack) {
  const auto ids = values_of<std::int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto addresses = values_of<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  require(ids.size() == addresses.size(), "a variant pack has more ids than addresses, or fewer");
  TensorBindings bindings;
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto found = graph.tensors().find(ids[i]);
    require(found != graph.tensors().end(),
            "id " + std::to_string(ids[i]) + " is not of a tensor of the graph");
    const CudnnTensor& tensor = found->second;
    require(!tensor.is_virtual, describe(tensor) + " is virtual, and has an address");
    require(seen.insert(ids[i]).second, describe(tensor) + " has two addresses");
    require(addresses[i] != nullptr, describe(tensor) + " has the null address");
    if (tensor.is_by_value) {
      require(!is_device_memory(addresses[i], sizeof(float)),
              describe(tensor) + " is by value, and its value lies in device memory");
      std::memcpy(&bindings.numbers[ids[i]], addresses[i], sizeof(float));
    } else {
      check_memory(tensor, addresses[i]);
      bindings.memory[ids[i]] = addresses[i];
    }
  }
  for (const auto& [id, tensor] : graph.tensors()) {
    require(tensor.is_virtual || seen.contains(id), describe(tensor) + " has no address");
  }
  return bindings;
}

// Requires that no result lies over another tensor.
void check_overlaps(const OperationGraph& graph, const TensorBindings& bindings) {
  for (const auto& [written, at_written] : bindings.memory) {
    if (!graph.is_written(written)) continue;
    const CudnnTensor& result = graph.tensors().at(written);
    for (const auto& [id, address] : bindings.memory) {
      if (id == written) continue;
      const CudnnTensor& other = graph.tensors().at(id);
      require(!overlap(result, at_written, other, address),
              describe(result) + " is written over " + describe(other));
    }
  }
}

void check_workspace(const OperationGraph& graph, const TensorBindings& bindings,
                     const void* workspace, std::size_t size) {
  constexpr std::uintptr_t kAlignment = 256;
  if (size == 0) return;
  require(reinterpret_cast<std::uintptr_t>(workspace) % kAlignment == 0,
          "the workspace is not aligned to 256 bytes");
  require(is_device_memory(workspace, size), "the workspace of " + std::to_string(size) +
                                                 " bytes does not lie in one block of device "
                                                 "memory");
  const auto* const begin = static_cast<const char*>(workspace);
  for (const auto& [id, address] : bindings.memory) {
    const CudnnTensor& tensor = graph.tensors().at(id);
    const auto* const other = static_cast<const char*>(address);
    require(other + tensor.extent() <= begin || begin + size <= other,
            describe(tensor) + " lies in the workspace");
  }
}

struct Launch {
  CUstream_st* stream;
  Work work;
};

// Checks an execution, and makes it independent of the descriptors.
Launch make_launch(Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t plan_key,
                   cudnnBackendDescriptor_t pack_key) {
  CUstream_st* const stream = library.stream_of(handle);
  const Descriptor& plan = *library.find_final(plan_key);
  const Descriptor& pack = *library.find_final(pack_key);
  require(plan.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
              pack.type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
          "what is executed is not a plan with a variant pack");
  require_alive(plan);
  require(plan.attributes.contains(CUDNN_ATTR_EXECUTION_PLAN_HANDLE),
          "a plan for a described device is executed");
  const TensorBindings bindings = bind(*plan.graph, pack);
  check_overlaps(*plan.graph, bindings);
  void* const workspace = value_of<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  const auto size = static_cast<std::size_t>(plan.engine->workspace + plan.engine->more_for_plan);
  check_workspace(*plan.graph, bindings, workspace, size);

  Work work{
      .name = std::string{"cuDNN "} + plan.kind + " engine" + std::to_string(plan.engine->number),
      .accesses = {},
      .compute = [graph = plan.graph, bindings, workspace, size] {
        if (size > 0) poison(workspace, size);
        compute(*graph, bindings);
        if (size > 0) poison(workspace, size);
      }};
  for (const auto& [id, address] : bindings.memory) {
    work.accesses.push_back({.begin = address,
                             .size = plan.graph->tensors().at(id).extent(),
                             .writes = plan.graph->is_written(id)});
  }
  if (size > 0) work.accesses.push_back({.begin = workspace, .size = size, .writes = true});
  return {.stream = stream, .work = std::move(work)};
}

}  // namespace
}  // namespace spillway::emulated

using namespace spillway::emulated;

extern "C" {

// The functions that return texts and the version neither fail nor use the device.

size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "an unknown status of cuDNN";
  }
}

void cudnnGetLastErrorString(char* message, size_t max_size) {
  if (message == nullptr || max_size == 0) return;
  const std::string text = std::exchange(last_error(), {}).substr(0, max_size - 1);
  std::memcpy(message, text.c_str(), text.size() + 1);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return serve(
      "cudnnCreate",
      [&](Library& library) {
        require(handle != nullptr, "there is no place for the handle");
        *handle = library.add_handle();
      },
      CUDNN_STATUS_NOT_INITIALIZED);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return release("cudnnDestroy", [&](Library& library) { library.erase(handle); });
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return serve("cudnnSetStream", [&](Library& library) { library.stream_of(handle) = stream; });
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  return serve("cudnnBackendCreateDescriptor", [&](Library& library) {
    require(descriptor != nullptr, "there is no place for the descriptor");
    (void)rules_of(type);
    *descriptor = library.add(type);
  });
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return release("cudnnBackendDestroyDescriptor",
                 [&](Library& library) { library.erase(descriptor); });
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  return serve("cudnnBackendSetAttribute", [&](Library& library) {
    Descriptor& d = *library.find(descriptor);
    require(!d.is_final, text_of(d.type) + " is changed after it was finalized");
    const AttributeRule& rule = rule_for(d, name, type);
    require(rule.use != Use::kResult, "an attribute is set that is a result");
    require(count >= rule.least && count <= rule.most && values != nullptr,
            "attribute " + std::to_string(static_cast<int>(name)) + " has " +
                std::to_string(count) + " values");
    const auto size = static_cast<std::size_t>(count);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      set_attribute(library, d, name, type, {},
                    {static_cast<const cudnnBackendDescriptor_t*>(values), size});
    } else {
      set_attribute(library, d, name, type,
                    {static_cast<const char*>(values), size * value_bytes(type)}, {});
    }
  });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return serve("cudnnBackendFinalize", [&](Library& library) {
    Descriptor& d = *library.find(descriptor);
    require(!d.is_final, text_of(d.type) + " is finalized twice");
    finalize(d);
  });
}

// NOLINTNEXTLINE(misc-misplaced-const): cuDNN declares it like this
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room,
                                       int64_t* count, void* values) {
  return serve("cudnnBackendGetAttribute", [&](Library& library) {
    const Descriptor& d = *library.find_final(descriptor);
    require_alive(d);
    (void)rule_for(d, name, type);
    require(room >= 0 && (room == 0 || values != nullptr), "there is no place for the values");
    get_attribute(library, d, name, {.room = room, .count = count, .values = values});
  });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  constexpr const char* kName = "cudnnBackendExecute";
  constexpr cudnnStatus_t kFailure = CUDNN_STATUS_EXECUTION_FAILED;
  if (const int error = begin_call(kName); error != 0) return refuse_device(error, kName, kFailure);
  return run_body(kName, [&] {
    Library& library = Library::get();
    std::unique_lock lock{library.mutex};
    Launch launch = make_launch(library, handle, plan, pack);
    lock.unlock();  // the work may run at once
    const int error = enqueue(launch.stream, std::move(launch.work));
    return error == 0 ? CUDNN_STATUS_SUCCESS : refuse_device(error, kName, kFailure);
  });
}

}  // extern "C"

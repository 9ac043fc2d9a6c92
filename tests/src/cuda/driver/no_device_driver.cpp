// A driver, libcuda.so.1, without a device. It has the functions that cuDNN 9.19 looks up before it
// lists and compiles kernels. It accepts compiled kernels, but cannot launch anything.

namespace {

constexpr int kSuccess = 0;
constexpr int kStubLibrary = 34;

// Address for handles; never read.
int anything = 0;

}  // namespace

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

int cuLibraryLoadData(void** library) {
  *library = &anything;
  return kSuccess;
}
int cuLibraryGetKernel(void** kernel) {
  *kernel = &anything;
  return kSuccess;
}
int cuLibraryUnload() { return kSuccess; }
int cuGetErrorString(int /*error*/, const char** text) {
  *text = "no device";
  return kSuccess;
}
int cuGetErrorName(int /*error*/, const char** name) {
  *name = "NO_DEVICE";
  return kSuccess;
}

int cuInit() { return kStubLibrary; }
int cuDriverGetVersion() { return kStubLibrary; }
int cuDeviceGet() { return kStubLibrary; }
int cuDeviceGetCount() { return kStubLibrary; }
int cuCtxGetCurrent() { return kStubLibrary; }
int cuCtxGetLimit() { return kStubLibrary; }
int cuCtxPopCurrent() { return kStubLibrary; }
int cuCtxPushCurrent() { return kStubLibrary; }
int cuStreamGetCtx() { return kStubLibrary; }
int cuLibraryLoadFromFile() { return kStubLibrary; }
int cuKernelGetAttribute() { return kStubLibrary; }
int cuKernelSetAttribute() { return kStubLibrary; }
int cuLinkCreate() { return kStubLibrary; }
int cuLinkAddData() { return kStubLibrary; }
int cuLinkComplete() { return kStubLibrary; }
int cuLinkDestroy() { return kStubLibrary; }
int cuLaunchKernel() { return kStubLibrary; }
int cuLaunchKernelEx() { return kStubLibrary; }
int cuLaunchCooperativeKernel() { return kStubLibrary; }
int cuOccupancyMaxPotentialClusterSize() { return kStubLibrary; }
}
// NOLINTEND(readability-identifier-naming)

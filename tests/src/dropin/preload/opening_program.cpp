// A program that opens a module, and with it a private shared CUDA runtime, like Python.
#include <dlfcn.h>

#include <cstdio>

int main(int count, char** arguments) {
  void* const module = dlopen(MODULE, RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    std::puts(dlerror());
    return 1;
  }
  reinterpret_cast<void (*)(int, char**)>(dlsym(module, "act"))(count, arguments);
}

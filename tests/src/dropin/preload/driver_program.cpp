// A program without GPU code that opens the driver.
#include <dlfcn.h>

int main() { return dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL) == nullptr ? 1 : 0; }

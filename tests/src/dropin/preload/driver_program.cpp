// A program that has no code for GPUs, and opens the driver.
#include <dlfcn.h>

int main() { return dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL) == nullptr ? 1 : 0; }

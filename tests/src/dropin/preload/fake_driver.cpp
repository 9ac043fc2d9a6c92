// libcuda.so.1, of which there is only the name.
extern "C" int cuInit(unsigned /*flags*/) { return 0; }  // NOLINT(readability-identifier-naming)

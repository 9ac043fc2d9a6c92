// An empty libcuda.so.1: only its name matters.
extern "C" int cuInit(unsigned /*flags*/) { return 0; }  // NOLINT(readability-identifier-naming)

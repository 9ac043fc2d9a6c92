// A program with a statically linked CUDA runtime: only its section of GPU code shows this.
#include <array>

[[gnu::section(".nv_fatbin"), gnu::used]] const std::array kCode{'G', 'P', 'U'};

int main() { return kCode[0] == 'G' ? 0 : 1; }

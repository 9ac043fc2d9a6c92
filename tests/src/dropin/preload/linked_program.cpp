// A program linked with a shared CUDA runtime.
extern "C" void act(int count, char** arguments);

int main(int count, char** arguments) { act(count, arguments); }

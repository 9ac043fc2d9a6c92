// A libspillway_mpi.so of another build.
extern "C" {

[[gnu::visibility("default")]] const char* spillway_mpi_build() { return "0.0.1 of somebody else"; }

}  // extern "C"
